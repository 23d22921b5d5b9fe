// Narrows the page's content security policy while it runs. A policy added later can only forbid
// more.

/**
 * Lets the page open connections to these relays only, from now on. Without any relay it can
 * connect to nothing.
 */
export function allowOnly(relays: readonly string[]): void {
  const policy = document.createElement('meta');
  policy.httpEquiv = 'Content-Security-Policy';
  const origins = [...new Set(relays.map((relay) => new URL(relay)).map((url) => `${url.protocol}//${url.host}`))];
  policy.content = `connect-src ${origins.length > 0 ? origins.join(' ') : "'none'"}`;
  document.head.append(policy);
}
