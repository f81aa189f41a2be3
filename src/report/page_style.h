#pragma once
// Style and script of pages (report/run_page.h).

namespace cytra::report {

inline constexpr const char* kReportStyle = R"css(
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#1c2330;--soft:#667085;--line:#e4e7ec;
--c0:#2f6fde;--c1:#e8762d;--c2:#2a9d6f;--c3:#8a5cd6;--c4:#d1437c;--c5:#6b7a90;--bad:#c4320a}
@media(prefers-color-scheme:dark){:root{--page:#11151c;--card:#1a202a;--ink:#e6e9ef;--soft:#98a2b3;--line:#2d3542;
--c0:#6ea1ff;--c1:#ff9d5c;--c2:#5ccf9f;--c3:#b794f6;--c4:#f382ae;--c5:#a3b1c6;--bad:#ff8a65}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1120px;padding:28px 20px 60px;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
header{display:flex;flex-wrap:wrap;align-items:baseline;gap:4px 14px;margin-bottom:18px}
h1{font-size:24px;margin:0;overflow-wrap:anywhere}
h2{font-size:13px;margin:30px 0 10px;color:var(--soft);text-transform:uppercase;letter-spacing:.06em}
.badge{font-size:13px;padding:2px 10px;border-radius:20px;background:color-mix(in srgb,var(--c2) 16%,transparent);color:var(--c2)}
.badge.bad{background:color-mix(in srgb,var(--bad) 14%,transparent);color:var(--bad)}
.grid2{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(400px,100%),1fr));gap:14px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:14px}
.card,figure{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:14px 16px;margin:0}
.tiles small,figcaption,.soft{color:var(--soft);font-size:13px}
.tiles b{display:block;font-size:22px;font-variant-numeric:tabular-nums;font-weight:600}
.plot{position:relative}.plot h3{font-size:15px;margin:0;display:inline}
.key{font-size:12.5px;color:var(--soft);margin-left:12px}
.key i{display:inline-block;width:14px;height:3px;border-radius:2px;vertical-align:middle;margin-right:5px;background:var(--c)}
svg{display:block;width:100%;height:auto;margin-top:6px}
svg path{stroke:var(--line);fill:none}svg text{font-size:10.5px;fill:var(--soft)}
polyline{fill:none;stroke:var(--c);stroke-width:1.6;stroke-linejoin:round}
polygon{fill:var(--c);opacity:.2}circle{fill:var(--c)}
.c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}.c3{--c:var(--c3)}.c4{--c:var(--c4)}.c5{--c:var(--c5)}
.tip{position:absolute;top:12px;right:16px;font-size:12.5px;background:var(--card);border:1px solid var(--line);
border-radius:8px;padding:4px 9px;pointer-events:none;font-variant-numeric:tabular-nums}
.tip:empty{display:none}
.images{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(330px,100%),1fr));gap:14px}
figure{padding:10px}figure img{width:100%;display:block;border-radius:6px;image-rendering:pixelated}
figcaption{margin-top:6px;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%}td,th{padding:5px 12px 5px 0;text-align:left;vertical-align:top;
border-top:1px solid var(--line);overflow-wrap:anywhere}tr:first-child>*{border-top:0}th{font-weight:500;color:var(--soft);white-space:nowrap}
.bar+.key{margin-left:0}
.numbers td{font-variant-numeric:tabular-nums}
.bar{display:flex;height:12px;border-radius:6px;overflow:hidden;margin:4px 0 8px;background:var(--line)}.bar i{background:var(--c)}
pre{margin:10px 0 0;overflow-x:auto;font:12.5px/1.5 ui-monospace,"DejaVu Sans Mono",monospace}
summary{cursor:pointer}ul{margin:0;padding-left:18px;overflow-wrap:anywhere}
@media print{body{background:none;max-width:none;padding:0;font-size:12px}.card,figure{break-inside:avoid}pre{white-space:pre-wrap}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
)css";

/// Values under the pointer; what is folded opens for the printer.
inline constexpr const char* kReportScript = R"js(
for(const svg of document.querySelectorAll('.plot svg')){
const tip=svg.parentNode.querySelector('.tip'),num=k=>svg.dataset[k].split(' ').map(Number),
[xa,xb,x0,x1]=num('x'),[ya,yb,y0,y1]=num('y'),log=svg.dataset.log,
lines=[...svg.querySelectorAll('polyline')].map(l=>[l.dataset.name,[...l.points].map(p=>[p.x,p.y])]),
rule=svg.appendChild(document.createElementNS(svg.namespaceURI,'path')),
value=y=>{const t=(y-ya)/(yb-ya);return log?y0*(y1/y0)**t:y0+t*(y1-y0)};
svg.onpointermove=e=>{const x=new DOMPoint(e.clientX,e.clientY).matrixTransform(svg.getScreenCTM().inverse()).x;
const hits=lines.map(([n,p])=>[n,p.reduce((a,b)=>Math.abs(b[0]-x)<Math.abs(a[0]-x)?b:a)]);
const at=hits.reduce((a,b)=>Math.abs(b[1][0]-x)<Math.abs(a[1][0]-x)?b:a)[1][0];
rule.setAttribute('d',`M${at} ${yb}V${ya}`);
tip.textContent='step '+Math.round(x0+(at-xa)/(xb-xa)*(x1-x0))+hits.filter(h=>Math.abs(h[1][0]-at)<4)
.map(h=>' \u00b7 '+h[0]+' '+value(h[1][1]).toPrecision(4)).join('')};
svg.onpointerleave=()=>{tip.textContent='';rule.removeAttribute('d')}}
onbeforeprint=()=>document.querySelectorAll('details').forEach(d=>d.open=true);
)js";

}  // namespace cytra::report
