// Narrows the page's content security policy while it runs. A policy added later can only forbid
// more.

/**
 * From now on the page can open connections to these relays only; to nothing where there are none.
 */
export function allowOnly(relays: readonly string[]): void {
  const policy = document.createElement('meta');
  policy.httpEquiv = 'Content-Security-Policy';
  const origins = [...new Set(relays.map((relay) => new URL(relay)).map((url) => `${url.protocol}//${url.host}`))];
  policy.content = `connect-src ${origins.length > 0 ? origins.join(' ') : "'none'"}`;
  document.head.append(policy);
}
