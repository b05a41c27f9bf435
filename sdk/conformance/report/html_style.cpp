// Styles of the page: light and dark, wide and narrow, screen and print.
#include "conformance/report/html.h"

namespace plugrad::conformance::html {

const char* const kStyle = R"css(
:root{color-scheme:light dark;--paper:#fff;--ink:#1c2430;--soft:#5b6675;--line:#d9dfe7;--card:#f5f7fa;
--pass:#1a7f4b;--fail:#c62f3b;--crash:#8e2a6b;--timeout:#6a46b5;--waived:#a86500;--unsupported:#7b8794;
--pass-bg:#dcf3e5;--fail-bg:#fbdfe1;--crash-bg:#f5dcec;--timeout-bg:#e7defa;--waived-bg:#fcebcc;
--unsupported-bg:#eceff3;--mono:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
@media (prefers-color-scheme:dark){:root{--paper:#12161c;--ink:#e4e9f0;--soft:#98a4b3;--line:#2c3541;
--card:#1a2029;--pass:#5fd196;--fail:#ff7d86;--crash:#ee8bc8;--timeout:#b79bff;--waived:#f0b352;
--unsupported:#8b97a6;--pass-bg:#173a28;--fail-bg:#4a1d22;--crash-bg:#431c37;--timeout-bg:#30234f;
--waived-bg:#42300f;--unsupported-bg:#232b35}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,"Segoe UI",Roboto,
"Helvetica Neue",Arial,sans-serif}
main{max-width:74rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.6rem;line-height:1.2;margin:.1rem 0 .3rem}
h2{font-size:1.15rem;margin:2.4rem 0 .7rem;padding-bottom:.3rem;border-bottom:1px solid var(--line)}
p{margin:.4rem 0}.soft{color:var(--soft)}.kind{letter-spacing:.06em;font-size:.8rem;color:var(--soft)}
code,pre{font-family:var(--mono);font-size:.86em;overflow-wrap:anywhere}
pre{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:.7rem .8rem;margin:.5rem 0;
overflow-x:auto;white-space:pre;overflow-wrap:normal;line-height:1.4}
pre.message{white-space:pre-wrap;overflow-wrap:anywhere}
.verdict{display:inline-block;font-weight:600;padding:.25rem .7rem;border-radius:6px;margin:.4rem 0}
.badge{display:inline-block;font-size:.78rem;font-weight:600;padding:.05rem .5rem;border-radius:99px}
.pass{color:var(--pass);background:var(--pass-bg)}.fail{color:var(--fail);background:var(--fail-bg)}
.crash{color:var(--crash);background:var(--crash-bg)}.timeout{color:var(--timeout);background:var(--timeout-bg)}
.waived{color:var(--waived);background:var(--waived-bg)}
.unsupported{color:var(--unsupported);background:var(--unsupported-bg)}
dl.facts{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:.8rem 0}
dl.facts dt{color:var(--soft)}dl.facts dd{margin:0;overflow-wrap:anywhere}
.levels{display:grid;gap:.55rem;margin-top:1rem}
.level{display:grid;grid-template-columns:6.5rem 1fr;gap:.1rem 1rem;align-items:center}
.level b{font-weight:600}.bar{display:flex;height:1.1rem;border-radius:5px;overflow:hidden;background:var(--card)}
.bar i{display:block;min-width:3px}.bar .pass{background:var(--pass)}.bar .fail{background:var(--fail)}
.bar .crash{background:var(--crash)}.bar .timeout{background:var(--timeout)}.bar .waived{background:var(--waived)}
.bar .unsupported{background:var(--unsupported);opacity:.45}
.level .counts{grid-column:2;font-size:.85rem;color:var(--soft)}
.card{border:1px solid var(--line);border-left:4px solid var(--fail);border-radius:8px;padding:.7rem .9rem;
margin:.8rem 0;break-inside:avoid-page}
.card.crash{border-left-color:var(--crash);background:none;color:inherit}
.card.timeout{border-left-color:var(--timeout);background:none;color:inherit}
.card h3{font-size:1rem;margin:0 0 .3rem;overflow-wrap:anywhere}
.command{display:flex;gap:.5rem;align-items:flex-start}.command pre{flex:1;margin:.3rem 0;min-width:0}
button{font:inherit;font-size:.8rem;padding:.3rem .6rem;border:1px solid var(--line);border-radius:6px;
background:var(--card);color:var(--ink);cursor:pointer;margin-top:.3rem}
input{font:inherit;width:100%;max-width:26rem;padding:.4rem .6rem;border:1px solid var(--line);border-radius:6px;
background:var(--card);color:var(--ink)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.88rem}table.wide{width:100%}
th,td{text-align:left;padding:.28rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}
th{color:var(--soft);font-weight:600}td.number,th.number{text-align:right;font-variant-numeric:tabular-nums;
white-space:nowrap}
.matrix{border-collapse:separate;border-spacing:2px}
.matrix th,.matrix td{border:0;padding:.22rem .4rem;text-align:center;white-space:nowrap;min-width:3.1rem}
.matrix th:first-child{text-align:left;position:sticky;left:0;background:var(--paper);z-index:1}
.matrix td{border-radius:4px;font-variant-numeric:tabular-nums;position:relative;cursor:default}
.matrix td:focus{outline:2px solid var(--ink)}
.matrix td[title]:focus::after{content:attr(title);position:absolute;left:0;top:110%;z-index:3;width:max-content;
max-width:17rem;white-space:pre-wrap;text-align:left;padding:.4rem .6rem;border-radius:6px;background:var(--ink);
color:var(--paper);font-size:.8rem}
details{margin:.3rem 0}summary{cursor:pointer;padding:.15rem 0}summary .soft{font-size:.88rem}
details ul{margin:.3rem 0;padding-left:1.4rem}footer{margin-top:3rem;color:var(--soft);font-size:.85rem}
@media (max-width:40rem){.level{grid-template-columns:1fr}.level .counts{grid-column:1}
dl.facts{grid-template-columns:1fr}dl.facts dd{margin-bottom:.4rem}main{padding:1rem .8rem 3rem}
.narrow-off{display:none}}
@media print{:root{color-scheme:light}body{font-size:11px}main{max-width:none;padding:0}button,input{display:none}
.scroll{overflow:visible}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
pre{white-space:pre-wrap}}
)css";

// Copies a replay command, and filters the list of tests. The page is complete without the script.
const char* const kScript = R"js(
document.addEventListener('click',e=>{const b=e.target.closest('button[data-copy]');if(!b)return;
navigator.clipboard.writeText(b.parentElement.querySelector('pre').textContent).then(()=>{
b.textContent='copied'},()=>{b.textContent='select and copy'})});
const box=document.getElementById('search');if(box)box.addEventListener('input',()=>{
const words=box.value.toLowerCase();for(const family of document.querySelectorAll('#all details')){let any=false;
for(const row of family.querySelectorAll('tbody tr')){const hit=row.textContent.toLowerCase().includes(words);
row.hidden=!hit;any=any||hit}family.hidden=!any;family.open=any&&words!==''}});
)js";

}  // namespace plugrad::conformance::html
