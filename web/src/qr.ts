// A text as a QR code, drawn as one path. No image is loaded, because the policy allows none.

import { encode } from 'uqr';

const SVG = 'http://www.w3.org/2000/svg';
/** Light modules around the code that readers need. */
const MARGIN = 4;

export function qrOf(text: string, title: string): SVGSVGElement {
  const { data, size: count } = encode(text, { ecc: 'M', border: MARGIN });
  const path = data.flatMap((row, y) => row.flatMap((dark, x) => (dark ? [`M${x} ${y}h1v1h-1z`] : []))).join('');
  const size = String(count);
  const svg = element('svg', { viewBox: `0 0 ${size} ${size}`, role: 'img', 'shape-rendering': 'crispEdges' });
  const name = element('title', {});
  name.textContent = title;
  // Dark on white in both colour schemes: many readers take nothing else.
  svg.append(name, element('rect', { width: size, height: size, fill: '#fff' }), element('path', { d: path, fill: '#000' }));
  return svg as SVGSVGElement;
}

function element(kind: string, attributes: Readonly<Record<string, string>>): SVGElement {
  const made = document.createElementNS(SVG, kind) as SVGElement;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
