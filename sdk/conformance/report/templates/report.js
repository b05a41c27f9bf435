document.addEventListener('click',e=>{const b=e.target.closest('button[data-copy]');if(!b)return;
navigator.clipboard.writeText(b.parentElement.querySelector('pre').textContent).then(()=>{
b.textContent='copied'},()=>{b.textContent='select and copy'})});
const box=document.getElementById('search');if(box)box.addEventListener('input',()=>{
const words=box.value.toLowerCase();for(const family of document.querySelectorAll('#all details')){let any=false;
for(const row of family.querySelectorAll('tbody tr')){const hit=row.textContent.toLowerCase().includes(words);
row.hidden=!hit;any=any||hit}family.hidden=!any;family.open=any&&words!==''}});
