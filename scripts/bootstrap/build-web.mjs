// decision 0101
//
// Builds the pages with Vite into dist/web, with a compressed form of each text, and replaces the previous build.
// Usage: node build-web.mjs
import { existsSync, renameSync, rmSync } from 'node:fs';
import { copyFile, readdir, readFile, writeFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { build } from 'vite';
import { webFolder, webSources } from './web-folder.mjs';

const nextFolder = `${webFolder}-next`;

const compressed = ['.js', '.css', '.svg', '.json'];
/** The last levels of Brotli take seconds for a large file. */
const largeBytes = 300_000;

const variants = {
  '.br': (bytes) =>
    promisify(brotliCompress)(bytes, {
      params: { [constants.BROTLI_PARAM_QUALITY]: bytes.length > largeBytes ? 9 : 11 },
    }),
  '.gz': (bytes) => promisify(gzip)(bytes, { level: 9 }),
};

async function bundle() {
  await build({
    configFile: false,
    root: webSources,
    publicDir: false,
    logLevel: 'error',
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    worker: { format: 'es' },
    build: {
      outDir: nextFolder,
      emptyOutDir: true,
      manifest: true,
      target: 'es2022',
      // A file as a data URI would be outside of the policy for fonts.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      chunkSizeWarningLimit: 4_000,
      rolldownOptions: {
        input: { main: join(webSources, 'main.tsx') },
        output: {
          codeSplitting: {
            // Nearly every page reads and changes something; apart, the halves of this library are larger.
            groups: [{ name: 'query', test: /node_modules[\\/]@tanstack[\\/]/ }],
          },
        },
      },
    },
  });
}

/** A name contains the hash of its content, so a form that exists is still right. */
async function compressAsset(name) {
  const path = join(nextFolder, 'assets', name);
  for (const [ending, compress] of Object.entries(variants)) {
    const previous = join(webFolder, 'assets', `${name}${ending}`);
    if (existsSync(previous)) await copyFile(previous, `${path}${ending}`);
    else await writeFile(`${path}${ending}`, await compress(await readFile(path)));
  }
}

await bundle();
const names = await readdir(join(nextFolder, 'assets'));
await Promise.all(names.filter((name) => compressed.includes(extname(name))).map(compressAsset));
rmSync(webFolder, { recursive: true, force: true });
renameSync(nextFolder, webFolder);
