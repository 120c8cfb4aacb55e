// Generates the types of the API that the pages call, from the OpenAPI description of the compiled product.
// Usage: node scripts/bootstrap/web-types.mjs
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire, register } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { readText, root } from './processes.mjs';
import { webTypesPath } from './web-folder.mjs';

const require = createRequire(import.meta.url);

/**
 * Lets openapi-typescript use the TypeScript that oazapfts depends on, because TypeScript 7 has no API for it. Applies
 * to the calling thread.
 */
function lendTypeScript() {
  const typescript = createRequire(require.resolve('oazapfts')).resolve('typescript');
  const hooks = `export function resolve(name, context, next) {
    const isLent = name === 'typescript' && context.parentURL?.includes('/node_modules/openapi-typescript/');
    return next(isLent ? ${JSON.stringify(pathToFileURL(typescript).href)} : name, context);
  }`;
  register(`data:text/javascript,${encodeURIComponent(hooks)}`);
}

/** Returns the types that openapi-typescript generates for an OpenAPI document. */
export async function generateTypes(document, options) {
  lendTypeScript();
  const { default: generate, astToString } = await import('openapi-typescript');
  return astToString(await generate(document, options));
}

async function describeApi() {
  const load = (path) => import(pathToFileURL(join(root, 'dist', 'api', path)).href);
  const { buildDescription } = await load('description/build-description.js');
  const { operations } = await load('contract/operations.js');
  return JSON.stringify(buildDescription(Object.values(operations), 'https://gateway.example'));
}

/** Writes the types if the description has changed since they were generated. */
async function updateTypes() {
  const document = await describeApi();
  const header = `// ${createHash('sha256').update(document).digest('hex')}\n`;
  if (readText(webTypesPath).startsWith(header)) return;
  const types = await generateTypes(document, { defaultNonNullable: false });
  mkdirSync(dirname(webTypesPath), { recursive: true });
  writeFileSync(webTypesPath, `${header}${types}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await updateTypes();
  // Some packages keep timers.
  process.exit(0);
}
