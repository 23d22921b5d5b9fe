// In place of libraries of age that the page never calls: it uses passphrases only (`build.mjs`).

export const MLKEM768P256 = {};
export const MLKEM768X25519 = {};
export const p256 = {};
export const x25519 = {};
