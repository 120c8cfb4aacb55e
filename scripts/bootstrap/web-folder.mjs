import { join } from 'node:path';
import { root } from './processes.mjs';

/** The sources of the pages, and where their build is served from. */
export const webSources = join(root, 'web');
export const webFolder = join(root, 'dist', 'web');

/** Types of the API that the pages call, made by `web-types.mjs`. */
export const webTypesPath = join(webSources, 'generated', 'api.d.ts');
