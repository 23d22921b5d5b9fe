// What lets a browser install the page as an app, and the page's own SHA-256.

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';

/**
 * SHA-256 of the file the browser has read, hex. Only true before the page changes itself. The
 * file is written as a browser serializes it, so the two are the same bytes (`build.mjs` makes
 * sure).
 */
export function ownHash(): string {
  return bytesToHex(sha256(utf8ToBytes(`<!DOCTYPE html>${document.documentElement.outerHTML}`)));
}

/**
 * Names the page as an app that opens at this address. Only pages from a server can be installed.
 */
export function offerToInstall(): void {
  if (!location.protocol.startsWith('http')) return;
  const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]')?.href ?? '';
  const manifest = {
    name: 'npubbot: choose your npub',
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
