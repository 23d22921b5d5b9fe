// Makes the page an app that a browser can install, and computes the page's own SHA-256.

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { language, tell } from './texts';

/**
 * SHA-256 of the file that the browser has read, in hex. It is computed before the page changes its
 * document. The file is written exactly as a browser serializes the document, so both are the same
 * bytes (`build.mjs` makes sure).
 */
export const ownHash = bytesToHex(sha256(utf8ToBytes(`<!DOCTYPE html>${document.documentElement.outerHTML}`)));

/**
 * Names the page as an app that opens at this address. Only pages from a server can be installed.
 */
export function offerToInstall(): void {
  if (!location.protocol.startsWith('http')) return;
  const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]')?.href ?? '';
  const manifest = {
    name: tell('page-title'),
    lang: language(),
    short_name: 'npubbot',
    start_url: location.href,
    id: location.origin + location.pathname,
    display: 'standalone',
    background_color: '#f6f5f2',
    theme_color: '#5b2bb5',
    icons: [{ src: icon, sizes: 'any', type: 'image/svg+xml', purpose: 'any' }],
  };
  const link = document.createElement('link');
  link.rel = 'manifest';
  link.href = `data:application/manifest+json,${encodeURIComponent(JSON.stringify(manifest))}`;
  document.head.append(link);
}
