import { join } from 'node:path';
import { root } from './processes.mjs';

/** Compiled code finds packages here before it looks in the project's own node_modules. */
export const bundleFolder = join(root, 'dist', 'node_modules');
