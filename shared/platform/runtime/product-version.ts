import { readFileSync } from 'node:fs';

/** Of the compiled file. */
const packageUrl = new URL('../../../../package.json', import.meta.url);
const buildUrl = new URL('../../../build.json', import.meta.url);

/** The version in package.json. */
export const productVersion = (JSON.parse(readFileSync(packageUrl, 'utf8')) as { version: string }).version;

/** Identifies the source that the running program was built from: two builds of the same source have the same. */
export const productBuild = readBuild();

/** Which build a process runs, in the form of a semantic version: `0.1.0+5d1f0c2a`. */
export const fullVersion = `${productVersion}+${productBuild}`;

function readBuild(): string {
  try {
    return (JSON.parse(readFileSync(buildUrl, 'utf8')) as { build: string }).build;
  } catch {
    // It was not built by the project's own program.
    return 'unknown';
  }
}
