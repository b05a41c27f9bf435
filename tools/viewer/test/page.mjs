// Fills the page with traces, as `plugrad view` does.
import { gzipSync } from 'node:zlib';

function escapeAttribute(text) {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

/// The page with traces { title, lines } or { title, base64 } in its places.
export function fillPage(template, traces) {
  let page = template;
  traces.forEach(({ title, lines, base64 }, index) => {
    const data = base64 ?? gzipSync(`${lines.join('\n')}\n`, { level: 1 }).toString('base64');
    const place = `<script type="application/octet-stream" id="trace-${index}"></script>`;
    if (!page.includes(place)) throw new Error(`the page has no place ${index}`);
    page = page
      .replace(place, () => place.replace('></', () => `>${data}</`))
      .replace(
        `<meta name="trace-${index}-title" content="">`,
        () => `<meta name="trace-${index}-title" content="${escapeAttribute(title)}">`,
      );
  });
  return page;
}
