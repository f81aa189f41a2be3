// Values under the pointer; what is folded opens for the printer.
for (const svg of document.querySelectorAll('.plot svg')) {
  const tip = svg.parentNode.querySelector('.tip');
  const numbers = key => svg.dataset[key].split(' ').map(Number);
  const [left, right, first, last] = numbers('x'), [bottom, top, low, high] = numbers('y');
  const lines = [...svg.querySelectorAll('polyline')].map(line => ({name: line.dataset.name, points: [...line.points]}));
  const rule = svg.appendChild(document.createElementNS(svg.namespaceURI, 'path'));
  const value = y => {
    const share = (y - bottom) / (top - bottom);
    return svg.dataset.log ? low * (high / low) ** share : low + share * (high - low);
  };
  const nearest = (points, x) => points.reduce((a, b) => Math.abs(b.x - x) < Math.abs(a.x - x) ? b : a);
  svg.onpointermove = event => {
    const {x} = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const hits = lines.map(({name, points}) => ({name, point: nearest(points, x)}));
    const at = nearest(hits.map(hit => hit.point), x).x;
    rule.setAttribute('d', `M${at} ${top}V${bottom}`);
    const said = hits.filter(({point}) => Math.abs(point.x - at) < 4).map(({name, point}) => `${name} ${value(point.y).toPrecision(4)}`);
    const place = first + (at - left) / (right - left) * (last - first);
    const where = svg.dataset.of ? `${svg.dataset.of} ${place.toPrecision(3)}` : `step ${Math.round(place)}`;
    tip.textContent = [where, ...said].join(' \u00b7 ');
  };
  svg.onpointerleave = () => {
    tip.textContent = '';
    rule.removeAttribute('d');
  };
}
onbeforeprint = () => document.querySelectorAll('details').forEach(part => { part.open = true; });
