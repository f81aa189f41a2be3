#include "app/serve/page/page.h"

#include <utility>

namespace cytra::app {
namespace {

constexpr const char* kPage = R"html(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Cytra</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="page.css">
<script src="page.js" defer></script>
<header>
<h1>Cytra</h1>
<a id="trainings" href="trainings">Trainings</a>
<label>Model <select id="model"></select></label>
<label>Token <input id="token" type="password" autocomplete="off" size="34"></label>
</header>
<main>
<label id="drop" for="file"><b>Drop an image here</b>, or choose a file
<small>TIFF, PNG, JPEG, NIfTI, NRRD, MetaImage, NumPy or DICOM</small>
<input id="file" type="file"></label>
<p id="status" role="status"></p>
<p id="error" role="alert"></p>
<section id="result" hidden>
<div class="controls">
<label id="threshold_row">Threshold <input id="threshold" type="range" min="0" max="1" step="any"><output id="threshold_text"></output></label>
<label>Opacity <input id="opacity" type="range" min="0" max="1" step="0.05" value="0.5"></label>
<label id="plane_row">Plane <input id="plane" type="range" min="0" step="1"><output id="plane_text"></output></label>
</div>
<canvas id="canvas" role="img" aria-label="the image with its result"></canvas>
<p id="about"></p>
<div class="controls">
<label>Format <select id="format">
<option value="auto">as the image's</option><option value="ome_tiff">OME-TIFF</option><option value="png">PNG</option>
<option value="nifti">NIfTI</option><option value="npy">NumPy</option></select></label>
<button id="save_image">Save the result</button>
<button id="save_table">Save the table of objects</button>
</div>
</section>
</main>
</html>
)html";

constexpr const char* kStyle = R"css(
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#1c2330;--soft:#667085;--line:#d0d5dd;--main:#2f6fde;--bad:#c4320a}
@media(prefers-color-scheme:dark){:root{--page:#11151c;--card:#1a202a;--ink:#e6e9ef;--soft:#98a2b3;--line:#2d3542;--main:#6ea1ff;--bad:#ff8a65}}
*{box-sizing:border-box}[hidden]{display:none!important}
body{margin:0 auto;max-width:1000px;padding:20px;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
header{display:flex;flex-wrap:wrap;align-items:baseline;gap:8px 22px;margin-bottom:16px}
h1{font-size:22px;margin:0;flex:1}
input,select,button{font:inherit;color:inherit}
select,button,input[type=password]{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:4px 10px}
button{cursor:pointer}button:hover,#drop:hover,#drop.over{border-color:var(--main)}
#drop{display:block;border:2px dashed var(--line);border-radius:12px;background:var(--card);padding:26px;text-align:center;cursor:pointer}
#drop small{display:block;color:var(--soft)}#drop input{margin-top:10px;max-width:100%}
p{margin:10px 0}p:empty{display:none}#error{color:var(--bad);overflow-wrap:anywhere}#about,#status{color:var(--soft)}
ul{padding:0;list-style:none}li{margin:6px 0;color:var(--soft)}li button{margin-right:8px}[aria-pressed=true]{border-color:var(--main)}
iframe{width:100%;height:80vh;border:1px solid var(--line);border-radius:12px}h1 a{color:inherit}
.controls{display:flex;flex-wrap:wrap;align-items:center;gap:8px 22px;margin:14px 0}
.controls label{display:flex;align-items:center;gap:8px}output{font-variant-numeric:tabular-nums;min-width:3.5em}
canvas{display:block;width:100%;max-height:80vh;object-fit:contain;image-rendering:pixelated;background:var(--card);
border:1px solid var(--line);border-radius:12px}
)css";

constexpr const char* kScript = R"js('use strict';
const by = id => document.getElementById(id);
const read = key => { try { return sessionStorage.getItem(key); } catch { return null; } };
const keep = (key, value) => { try { sessionStorage.setItem(key, value); } catch { /* not allowed */ } };

let file = null;      // the image
let shown = null;     // {about, image: ImageBitmap, result: ImageBitmap, values: its pixels}
let running = null;   // AbortController of the request

async function ask(path, body, signal, method = 'POST') {
  const headers = by('token').value ? {Authorization: 'Bearer ' + by('token').value} : {};
  const answer = await fetch(path, {method, headers, body, signal});
  if (answer.ok) return answer;
  let text = await answer.text();
  try { text = JSON.parse(text).error; } catch { /* another server's words */ }
  throw new Error(text || `${answer.status} ${answer.statusText}`);
}

/// Does some work that may fail, and says which. It is given up where another work begins.
async function work(what, own) {
  running?.abort();
  const mine = running = new AbortController();
  by('error').textContent = '';
  by('status').textContent = what;
  try {
    await own(mine.signal);
  } catch (error) {
    if (mine === running) by('error').textContent = error.message;
  }
  if (mine === running) by('status').textContent = '';
}

async function list_models() {
  try {
    const models = await (await ask('v2/repository/index')).json();
    const ready = models.filter(model => model.state === 'READY');
    by('model').replaceChildren(...ready.map(model => new Option(model.name, model.name)));
    by('error').textContent = '';
    keep('token', by('token').value);
  } catch (error) {
    by('error').textContent = error.message;
  }
}

/// Says how far a request is, until it is aborted or `own` ends.
async function watched(own, signal) {
  const id = Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('');
  const what = by('status').textContent;
  const timer = setInterval(async () => {
    try {
      const {done, total} = await (await ask(`progress/${id}`, undefined, signal, 'GET')).json();
      if (total && !signal.aborted && by('status').textContent) by('status').textContent = `${what} ${Math.floor(100 * done / total)} %`;
    } catch { /* it has not begun, or has ended */ }
  }, 500);
  try {
    return await own(id);
  } finally {
    clearInterval(timer);
  }
}

const query = (name, more) => new URLSearchParams({filename: name, ...more});
const model_path = (route, model) => model ? `${route}/${encodeURIComponent(model)}` : route;
const has_threshold = () => shown?.about.kind === 'probability';

async function bitmap(blob) {
  return createImageBitmap(blob, {colorSpaceConversion: 'none', premultiplyAlpha: 'none'});
}

const predict = more => file && work(`${file.name} is predicted ...`, async signal => {
  const own = file, model = by('model').value;
  const answer = await watched(id => ask(`${model_path('preview', model)}?${query(own.name, {request_id: id, ...more})}`, own, signal), signal);
  const form = await answer.formData();
  const about = JSON.parse(form.get('about'));
  const [image, result] = await Promise.all([bitmap(form.get('image')), bitmap(form.get('result'))]);
  if (signal.aborted) return;
  const place = new OffscreenCanvas(result.width, result.height).getContext('2d');
  place.drawImage(result, 0, 0);
  const is_new = shown?.file !== own || shown.model !== model;
  shown = {about, result, file: own, model, image, values: place.getImageData(0, 0, result.width, result.height).data};
  if (is_new) by('threshold').value = about.threshold;
  by('plane').max = about.planes - 1;
  by('plane').value = about.plane;
  by('threshold_row').hidden = !has_threshold();
  by('plane_row').hidden = about.planes === 1;
  by('result').hidden = false;
  draw();
});

/// A colour of its own for each number: hues a golden angle apart.
function colour(number) {
  const part = shift => {
    const k = (shift + number * 137.508 / 30) % 12;
    return 255 * (0.55 - 0.45 * Math.max(-1, Math.min(k - 3, 9 - k, 1)));
  };
  return [part(0), part(8), part(4)];
}

function draw() {
  const {about, image, result, values} = shown, canvas = by('canvas');
  const width = canvas.width = image.width, height = canvas.height = image.height;
  const opacity = Number(by('opacity').value), threshold = Number(by('threshold').value);
  const context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  by('threshold_text').textContent = threshold.toFixed(2);
  by('plane_text').textContent = `${about.plane} of ${about.planes}`;
  let said = about.shape.slice(1).join(' x ') + (about.shape.length > 3 ? ' voxels' : ' pixels');
  if (about.step > 1) said += `, 1 of ${about.step} pixels a side is shown`;
  if (about.kind === 'image') {
    context.globalAlpha = opacity;
    context.drawImage(result, 0, 0);
    context.globalAlpha = 1;
  } else {
    const numbers = new Uint32Array(width * height), colours = new Map(), over = context.createImageData(width, height);
    let foreground = 0;
    for (let i = 0; i < numbers.length; ++i) {
      numbers[i] = about.kind === 'labels' ? values[4 * i] + 256 * values[4 * i + 1] + 65536 * values[4 * i + 2]
                                           : values[4 * i] > 255 * threshold;
      if (numbers[i]) ++foreground;
    }
    for (let i = 0; i < numbers.length; ++i) {
      const own = numbers[i];
      if (!own) continue;
      if (!colours.has(own)) colours.set(own, colour(own));
      const x = i % width;
      const is_edge = (x > 0 && numbers[i - 1] !== own) || (x + 1 < width && numbers[i + 1] !== own) ||
                      numbers[i - width] !== own || numbers[i + width] !== own;
      over.data.set([...colours.get(own), 255 * (is_edge ? Math.min(1, 1.6 * opacity) : opacity)], 4 * i);
    }
    const place = new OffscreenCanvas(width, height);
    place.getContext('2d').putImageData(over, 0, 0);
    context.drawImage(place, 0, 0);
    said += `, ${(100 * foreground / numbers.length).toFixed(1)} % foreground`;
    if (about.kind === 'labels') said += `, ${colours.size} labels here`;
  }
  by('about').textContent = said;
}

const save = output => shown && work('The result is made ...', async signal => {
  const {file: own, model} = shown, more = output === 'image' ? {format: by('format').value} : {output};
  if (has_threshold()) more.threshold = by('threshold').value;
  const answer = await ask(`${model_path('predict', model)}?${query(own.name, more)}`, own, signal);
  const name = /filename="(.*)"/.exec(answer.headers.get('content-disposition'))?.[1] ?? 'result';
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await answer.blob());
  link.download = new TextDecoder().decode(Uint8Array.from(name, letter => letter.charCodeAt(0)));  // heads are bytes
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});

function take(chosen) {
  if (!chosen) return;
  file = chosen;
  by('result').hidden = true;
  predict({});
}

by('token').value = new URLSearchParams(location.hash.slice(1)).get('token') ?? read('token') ?? '';
history.replaceState(null, '', location.pathname);  // no token in bookmarks
by('token').onchange = list_models;
by('model').onchange = () => predict({});
by('file').onchange = () => take(by('file').files[0]);
by('threshold').oninput = by('opacity').oninput = () => shown && draw();
by('plane').onchange = () => predict({plane: by('plane').value});
by('save_image').onclick = () => save('image');
by('save_table').onclick = () => save('table');
document.ondragover = event => { event.preventDefault(); by('drop').classList.add('over'); };
document.ondragleave = () => by('drop').classList.remove('over');
document.ondrop = event => {
  event.preventDefault();
  by('drop').classList.remove('over');
  take(event.dataTransfer.files[0]);
};
list_models();
)js";

HttpResponse page_part(std::string body, const char* type) {
  return {200, std::move(body), type, {{"Referrer-Policy", "no-referrer"}}};
}

}  // namespace

HttpResponse html_response(std::string body, bool has_styles) {
  HttpResponse response = page_part(std::move(body), "text/html; charset=utf-8");
  response.headers.emplace_back(
      "Content-Security-Policy",
      std::string("default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors "
                  "'none'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
                  "style-src 'self'") +
          (has_styles ? " 'unsafe-inline'" : ""));
  return response;
}

HttpResponse page_html() {
  return html_response(kPage);
}
HttpResponse page_style() {
  return page_part(kStyle, "text/css; charset=utf-8");
}
HttpResponse page_script() {
  return page_part(kScript, "text/javascript; charset=utf-8");
}

}  // namespace cytra::app
