import { defineConfig } from 'vitest/config';
import { tables } from './texts.mjs';

export default defineConfig({ define: { TEXTS: JSON.stringify(tables()) } });
