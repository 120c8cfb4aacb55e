import { readFileSync } from 'node:fs';

/** Of the compiled file. */
const packageUrl = new URL('../../../../package.json', import.meta.url);

/** The version in package.json. */
export const productVersion = (JSON.parse(readFileSync(packageUrl, 'utf8')) as { version: string }).version;
