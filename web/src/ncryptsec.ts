// A secret key under a password: NIP-49.

import { xchacha20poly1305 } from '@noble/ciphers/chacha.js';
import { numberToBytesBE } from '@noble/curves/utils.js';
import { scryptAsync } from '@noble/hashes/scrypt.js';
import { encode } from './text';

/** 64 MiB for scrypt: as much as a phone's browser gives without complaint. */
const LOG_N = 16;

/** NIP-49's byte for "it is not tracked whether the key was handled insecurely". */
const UNTRACKED = 2;

export async function encrypt(key: bigint, password: string): Promise<string> {
  const salt = crypto.getRandomValues(new Uint8Array(16));
  const nonce = crypto.getRandomValues(new Uint8Array(24));
  const secret = numberToBytesBE(key, 32);
  const derived = await scryptAsync(password.normalize('NFKC'), salt, { N: 2 ** LOG_N, r: 8, p: 1, dkLen: 32 });
  const sealed = xchacha20poly1305(derived, nonce, Uint8Array.of(UNTRACKED)).encrypt(secret);
  secret.fill(0);
  derived.fill(0);
  return encode('ncryptsec', Uint8Array.of(2, LOG_N, ...salt, ...nonce, UNTRACKED, ...sealed));
}
