// The page at `/`: an image is dropped, its result is seen over it.
let file = null;      // the image
let shown = null;     // {about, image: ImageBitmap, result: ImageBitmap, values: its pixels}
let running = null;   // AbortController of the request

/// Does some work that may fail, and says which. It is given up where another work begins.
async function work(what, own) {
  running?.abort();
  const mine = running = new AbortController();
  by('error').textContent = '';
  by('status').textContent = what;
  try {
    await own(mine.signal);
  } catch (error) {
    if (mine === running) say(error);
  }
  if (mine === running) by('status').textContent = '';
}

async function list_models() {
  try {
    const models = await (await ask('v2/repository/index', '')).json();
    const ready = models.filter(model => model.state === 'READY');
    by('model').replaceChildren(...ready.map(model => new Option(model.name, model.name)));
    by('error').textContent = '';
    keep('token', by('token').value);
  } catch (error) {
    say(error);
  }
}

/// Says how far a request is, until it is aborted or `own` ends.
async function watched(own, signal) {
  const id = Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('');
  const what = by('status').textContent;
  const timer = setInterval(async () => {
    try {
      const {done, total} = await (await ask(`progress/${id}`, undefined, signal)).json();
      if (total && !signal.aborted && by('status').textContent) by('status').textContent = `${what} ${Math.floor(100 * done / total)} %`;
    } catch { /* it has not begun, or has ended */ }
  }, 500);
  try {
    return await own(id);
  } finally {
    clearInterval(timer);
  }
}

/// The inputs for the part of a file, which are shown where the server asks for one.
const parts = ['scene', 'timepoint'].map(by);
const query = (name, more) => new URLSearchParams(
  {filename: name, ...Object.fromEntries(parts.filter(part => !part.parentNode.hidden).map(part => [part.id, part.value])), ...more});
const model_path = (route, model) => model ? `${route}/${encodeURIComponent(model)}` : route;
const has_threshold = () => shown?.about.kind === 'probability';

const bitmap = blob => createImageBitmap(blob, {colorSpaceConversion: 'none', premultiplyAlpha: 'none'});

const predict = more => file && work(`${file.name} is predicted ...`, async signal => {
  const own = file, model = by('model').value;
  const answer = await watched(id => ask(`${model_path('preview', model)}?${query(own.name, {request_id: id, ...more})}`, own, signal), signal).catch(error => {
    const part = parts.find(each => each.parentNode.hidden && error.message.includes(`expected the parameter ${each.id}`));
    if (!part) throw error;
    part.parentNode.hidden = false;
    part.value = 0;
  });
  if (!answer) return predict(more);
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
  for (const part of parts) part.parentNode.hidden = true;
  predict({});
}

by('token').onchange = list_models;
by('model').onchange = () => predict({});
for (const part of parts) part.onchange = () => predict({});
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
  if (event.dataTransfer.files.length) by('file').files = event.dataTransfer.files;  // which shows its name
  take(event.dataTransfer.files[0]);
};
list_models();
