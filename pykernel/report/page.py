"""Parts of every page: the style, the script of figures, and the policy that says what a browser may load."""

from __future__ import annotations

import base64
import hashlib

from pykernel.report.markup import Html

STYLE = """
.pykernel{--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#c969a0;--c4:#c98a00;--c5:#3a9bdc;--c6:#8a8a8a;--c7:#7a6a3a;--c8:#a09a20;
--line:#8886;max-width:66rem;margin:0 auto;font:15px/1.45 system-ui,sans-serif;overflow-wrap:anywhere}
.pykernel h1{font-size:1.4rem;margin:.6rem 0}.pykernel h2{font-size:1.1rem;margin:1.6rem 0 .4rem;border-bottom:1px solid var(--line)}
.pykernel p{margin:.35rem 0;max-width:48rem}.pykernel .verdict{max-width:none;font-size:1.1rem;font-weight:600;border-left:4px solid var(--c0);padding:.2rem .8rem}
.pykernel .bad{border-color:var(--c1)}
.pykernel dl{display:grid;grid-template-columns:minmax(6rem,max-content) 1fr;gap:.1rem 1rem;margin:.4rem 0}.pykernel dt{opacity:.75}
.pykernel dd{margin:0}.pykernel .wide{overflow-x:auto}
.pykernel table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.4rem 0;background:none}
.pykernel th,.pykernel td{text-align:right;padding:.12rem .6rem;border-bottom:1px solid var(--line);overflow-wrap:normal}
.pykernel td:not(.w),.pykernel th:not(.w){white-space:nowrap}
.pykernel .w{text-align:left}.pykernel td.w:first-child{min-width:8rem}.pykernel th{font-weight:normal;opacity:.75}.pykernel .strong{font-weight:700}
.pykernel .heat td{border:1px solid transparent;text-align:center;padding:.1rem .35rem;font-size:.8rem}
.pykernel .heat .ringed{border:2px solid var(--c1)}
.pykernel figure{margin:1rem 0 1.6rem}.pykernel figcaption{margin-bottom:.2rem}
.pykernel .plot{position:relative;height:15rem;margin:.3rem .8rem 0 5.4rem;border:solid var(--line);border-width:0 0 1px 1px}
.pykernel .front{height:24rem}
.pykernel .plot>svg{position:absolute;inset:0;width:100%;height:100%;overflow:hidden}
.pykernel .y i,.pykernel .x i{position:absolute;font-style:normal}
.pykernel .y i{left:0;right:0;border-top:1px solid var(--line);height:0}
.pykernel .y b{position:absolute;right:calc(100% + .4rem);top:-.7em;font-weight:normal;font-size:.8rem;white-space:nowrap}
.pykernel .y em{position:absolute;right:calc(100% + 4.6rem);top:50%;width:15rem;margin-right:-7.6rem;text-align:center;font-style:normal;
font-size:.8rem;transform:translateY(-50%) rotate(-90deg);max-height:2.4em;overflow:hidden}
.pykernel .x i{bottom:-5px;height:5px;border-left:1px solid var(--line);width:0}
.pykernel .x b{position:absolute;top:5px;transform:translateX(-50%);font-weight:normal;font-size:.8rem;white-space:nowrap}
.pykernel .xl{text-align:center;font-size:.8rem;margin:1.5rem .8rem 0 5.4rem}
.pykernel .key span{margin-right:1.1rem;font-size:.85rem;display:inline-block}
.pykernel s{display:inline-block;width:1.3em;border-top:3px solid currentColor;vertical-align:middle;margin-right:.35em;opacity:1}
.pykernel s.a{border-width:.8em;border-color:var(--c0);opacity:.22}.pykernel s.d,.pykernel s.dot{width:.6em;border-width:.6em;border-radius:50%;height:0}
.pykernel path{fill:none;stroke:currentColor;vector-effect:non-scaling-stroke;stroke-width:1.3;stroke-linejoin:round}
.pykernel .p{stroke-width:5;stroke-linecap:round}.pykernel .front .p{stroke-width:9}.pykernel .front .off{stroke-width:6;opacity:.5}
.pykernel .a{fill:var(--c0);stroke:none;opacity:.22}.pykernel .m{stroke:var(--c1);stroke-width:1.5}
.pykernel .c0{color:var(--c0)}.pykernel .c1{color:var(--c1)}.pykernel .c2{color:var(--c2)}.pykernel .c3{color:var(--c3)}
.pykernel .c4{color:var(--c4)}.pykernel .c5{color:var(--c5)}.pykernel .c6{color:var(--c6)}.pykernel .c7{color:var(--c7)}
.pykernel .c8{color:var(--c8)}.pykernel .model{color:var(--c0);stroke-width:2.4}.pykernel .truth{opacity:.6}.pykernel .l.truth,.pykernel .l.thin{stroke-width:1.1}
.pykernel .stairs{stroke-width:1}.pykernel .ring{stroke-width:22;stroke-linecap:round;opacity:.25}
.pykernel .name{position:absolute;font-size:.75rem;margin:.35rem .5rem;white-space:nowrap;max-width:70%;overflow:hidden;text-overflow:ellipsis;pointer-events:none}
.pykernel u{position:absolute;top:0;bottom:0;border-left:1px dashed currentColor;text-decoration:none;opacity:.7}
.pykernel u b{font-size:.75rem;font-weight:normal;padding-left:.3em;white-space:nowrap}
.pykernel .lane{position:relative;margin:0 .8rem 0 5.4rem;height:1.1rem}.pykernel .lane svg{position:absolute;inset:.1rem 0;width:100%;height:.9rem}
.pykernel .lane b{position:absolute;right:calc(100% + .4rem);font-weight:normal;font-size:.75rem;width:5rem;text-align:right;overflow:hidden;
text-overflow:ellipsis;white-space:nowrap}
.pykernel .spark svg{width:9rem;height:1.3rem;vertical-align:middle}.pykernel .bar{display:inline-block;height:.7em;background:var(--c0);opacity:.55;margin-right:.4em}
.pykernel .hint{font-size:.8rem;opacity:.75}.pykernel .box{position:absolute;background:var(--c0);opacity:.18;pointer-events:none}
.pykernel .said{position:absolute;top:.2rem;right:.2rem;font-size:.8rem;padding:.1rem .4rem;pointer-events:none;background:Canvas;color:CanvasText;opacity:.9}
.pykernel caption{text-align:left;font-weight:600;padding-bottom:.2rem}.pykernel code{font-size:.9em}.pykernel pre{white-space:pre-wrap;margin:.3rem 0;font-size:.85rem}
@media (max-width:36rem){.pykernel .x i:nth-child(even) b{display:none}.pykernel th,.pykernel td{padding:.12rem .35rem}
.pykernel .name:not(.strong){display:none}}
@media (prefers-color-scheme:dark){.pykernel{--c0:#56b4e9;--c1:#ff7f2a;--c2:#2fc79a;--c3:#e59ac6;--c4:#e6b84a;--c5:#8fd0ff;--c7:#b8a46a}}
"""
WHOLE = """
:root{color-scheme:light dark}body{margin:0;padding:1rem}
"""
SCRIPT = r"""
(()=>{"use strict";
const tick=v=>v&&(Math.abs(v)<1e-4||Math.abs(v)>=1e9)?String(+v.toPrecision(3)):(+v.toPrecision(6)).toLocaleString("en",{maximumFractionDigits:6});
const ticks=(a,b,most)=>{const rough=(b-a)/most,p=10**Math.floor(Math.log10(rough)),s=[1,2,5,10].map(d=>d*p).find(d=>d>=rough*(1-1e-9));
 const found=[];for(let k=Math.ceil(a/s-1e-9);k<=b/s+1e-9;k++)found.push(k*s);return found;};
const DAY=86400,DAYS=[1,2,5,10],SECONDS=[1,2,5,10,15,30,60,120,300,600,900,1800,3600,7200,10800,21600,43200],MONTHS=[1,2,3,6,12,24,60,120,240];
const text=t=>new Date(1000*Math.round(t)).toISOString().replace("T"," ");
const between=(x,from,to)=>{let a=0,b=from.length-1;while(b-a>1){const m=(a+b)>>1;if(from[m]<=x)a=m;else b=m;}
 return from[b]===from[a]?to[a]:to[a]+(to[b]-to[a])*(x-from[a])/(from[b]-from[a]);};
const times=(first,last,most)=>{const rough=(last-first)/most,step=[...SECONDS,...DAYS.map(d=>d*DAY)].find(s=>s>=rough),at=[];
 if(step){for(let k=Math.ceil(first/step);k<=Math.floor(last/step);k++)at.push(k*step);
  return at.map(t=>[t,step>=DAY?text(t).slice(0,10):step>=60?text(t).slice(5,16):text(t).slice(11,19)]);}
 const months=MONTHS.find(m=>m*28*DAY>=rough)||240,year=new Date(first*1000).getUTCFullYear();
 for(let k=0;;k+=months){const t=Date.UTC(year,k)/1000;if(t>last)break;if(t>=first)at.push(t);}return at.map(t=>[t,text(t).slice(0,7)]);};
const points=path=>{if(!path.points){const all=[];let x=0,y=0;
 for(const part of path.getAttribute("d").split("M").slice(1)){const n=(part.match(/-?\d+/g)||[]).map(Number);x=n[0];y=n[1];all.push([x,y]);
  for(let i=2;i+1<n.length;i+=2){x+=n[i];y+=n[i+1];all.push([x,y]);}}path.points=all;}return path.points;};
for(const plot of document.querySelectorAll(".pykernel .plot[data-x]")){
 if(plot.bound)continue;plot.bound=true;
 const svg=plot.querySelector("svg"),[x0,x1]=plot.dataset.x.split(" ").map(Number),[y0,y1,log]=plot.dataset.y.split(" ").map(Number);
 const whole=svg.viewBox.baseVal,W=whole.width,H=whole.height;let view=[0,0,W,H];
 const xOf=u=>x0+u/W*(x1-x0),yOf=v=>log?y0*(y1/y0)**(1-v/H):y1-v/H*(y1-y0);
 const knots=plot.dataset.t&&plot.dataset.t.split(" ").map(Number),rows=knots&&knots.filter((_,i)=>i%2===0),seconds=knots&&knots.filter((_,i)=>i%2);
 const timeOf=x=>between(x,rows,seconds);
 const lanes=[];for(let e=plot.previousElementSibling;e&&e.className==="lane";e=e.previousElementSibling)lanes.push(e.querySelector("svg"));
 const said=document.createElement("span");said.className="said";said.hidden=true;plot.append(said);
 const first={x:plot.querySelector(".x").innerHTML,y:plot.querySelector(".y").innerHTML},label=plot.querySelector(".y em");
 const show=()=>{const [a,b,w,h]=view,all=w===W&&h===H;svg.setAttribute("viewBox",view.join(" "));
  for(const lane of lanes)lane.setAttribute("viewBox",[a,0,w,1].join(" "));
  const put=(kind,side,values,where)=>{const box=plot.querySelector("."+kind);if(all){box.innerHTML=first[kind];return;}
   box.replaceChildren(...values.map(([v,told])=>{const i=document.createElement("i"),t=document.createElement("b");t.textContent=told;i.append(t);
    i.style[side]=100*where(v)+"%";return i;}),...(kind==="y"&&label?[label]:[]));};
  const xa=xOf(a),xb=xOf(a+w),yb=yOf(b),ya=yOf(b+h);
  const plain=v=>[v,tick(v)];
  put("x","left",seconds?times(timeOf(xa),timeOf(xb),6).map(([t,told])=>[between(t,seconds,rows),told]):ticks(xa,xb,6).map(plain),v=>(v-xa)/(xb-xa));
  put("y","bottom",ticks(ya,yb,6).map(plain),v=>log?Math.log(v/ya)/Math.log(yb/ya):(v-ya)/(yb-ya));
  for(const mark of plot.querySelectorAll("u")){const at=(+mark.dataset.at-xa)/(xb-xa);mark.style.left=100*at+"%";mark.hidden=at<0||at>1;}};
 const fit=()=>{let low=H,high=0;for(const path of svg.querySelectorAll("path"))for(const [x,y] of points(path))
  if(x>=view[0]&&x<=view[0]+view[2]){low=Math.min(low,y);high=Math.max(high,y);}
  if(high>low){const room=.06*(high-low);view[1]=low-room;view[3]=high-low+2*room;}};
 const place=e=>{const r=svg.getBoundingClientRect();return [Math.min(1,Math.max(0,(e.clientX-r.left)/r.width)),Math.min(1,Math.max(0,(e.clientY-r.top)/r.height))];};
 let from=null,box=null;plot.style.touchAction="pan-y";
 plot.addEventListener("pointerdown",e=>{from=place(e);plot.setPointerCapture(e.pointerId);box=document.createElement("span");box.className="box";plot.append(box);e.preventDefault();});
 plot.addEventListener("pointermove",e=>{const to=place(e);
  if(from){const tall=Math.abs(to[1]-from[1])>.15;box.style.left=100*Math.min(from[0],to[0])+"%";box.style.width=100*Math.abs(to[0]-from[0])+"%";
   box.style.top=tall?100*Math.min(from[1],to[1])+"%":0;box.style.height=tall?100*Math.abs(to[1]-from[1])+"%":"100%";return;}
  const u=view[0]+to[0]*view[2],told=[];
  for(const path of svg.querySelectorAll("path[data-name]")){const p=points(path);let a=0,b=p.length-1;
   while(b-a>1){const m=(a+b)>>1;if(p[m][0]<=u)a=m;else b=m;}
   const at=p[b]&&Math.abs(p[b][0]-u)<Math.abs(p[a][0]-u)?p[b]:p[a];if(at)told.push(path.dataset.name+" "+tick(+yOf(at[1]).toPrecision(4)));}
  said.textContent=(seconds?text(timeOf(xOf(u))).slice(0,19):tick(Math.round(xOf(u))))+": "+told.join(", ");said.hidden=!told.length;});
 plot.addEventListener("pointerleave",()=>{said.hidden=true;});
 plot.addEventListener("pointerup",e=>{if(!from)return;const to=place(e);box.remove();
  const l=Math.min(from[0],to[0]),r=Math.max(from[0],to[0]),t=Math.min(from[1],to[1]),b=Math.max(from[1],to[1]);from=null;
  if(r-l<.01)return;const [a,c,w,h]=view,tall=b-t>.15;
  view=[a+l*w,tall?c+t*h:c,Math.max((r-l)*w,W/1e5),tall?(b-t)*h:h];if(!tall)fit();show();});
 plot.addEventListener("pointercancel",()=>{from=null;if(box)box.remove();});
 plot.addEventListener("dblclick",()=>{view=[0,0,W,H];show();});
}
for(const hint of document.querySelectorAll(".pykernel .hint"))hint.hidden=false;
})();
"""
HINT = "Drag across a figure to zoom in; double-click to zoom out; move the pointer to read values."


def policy(*scripts: str, more: str = "") -> Html:
    """Return the element of a page's head that lets a browser run only these scripts and load nothing else.  more: other
    sources of scripts.
    """
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join([*(f"'sha256-{digest}'" for digest in digests), more]).strip()
    content = f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}"
    return Html(f'<meta http-equiv="Content-Security-Policy" content="{content}">')
