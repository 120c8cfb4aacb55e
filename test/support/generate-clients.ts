import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire, register } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type { ExecutionContext } from 'ava';

const run = promisify(execFile);
const require = createRequire(import.meta.url);

/**
 * Lets openapi-typescript use the TypeScript that oazapfts depends on, because TypeScript 7 has no API for it. Applies
 * to the calling thread.
 */
function lendTypeScript(): void {
  const typescript = createRequire(require.resolve('oazapfts')).resolve('typescript');
  const hooks = `export function resolve(name, context, next) {
    const isLent = name === 'typescript' && context.parentURL?.includes('/node_modules/openapi-typescript/');
    return next(isLent ? ${JSON.stringify(pathToFileURL(typescript).href)} : name, context);
  }`;
  register(`data:text/javascript,${encodeURIComponent(hooks)}`);
}

/** Returns the types that openapi-typescript generates for an OpenAPI document. */
export async function generateTypes(document: string): Promise<string> {
  lendTypeScript();
  const { default: generate, astToString } = await import('openapi-typescript');
  return astToString(await generate(document));
}

/** Returns the client that oazapfts generates for the OpenAPI document in this file. */
export async function generateClient(file: string): Promise<string> {
  const { generateSource } = await import('oazapfts');
  return generateSource(file);
}

/** Creates a directory in which `compile` finds the packages of the repository. */
export async function createClientDirectory(t: ExecutionContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'mg-clients-'));
  t.teardown(() => rm(directory, { recursive: true }));
  await symlink(join(process.cwd(), 'node_modules'), join(directory, 'node_modules'));
  return directory;
}

/**
 * Compiles all TypeScript files in a directory as strictly as the repository, except for `exactOptionalPropertyTypes`,
 * which generated clients do not support. Returns the compiler's messages.
 */
export async function compile(directory: string): Promise<string> {
  const config = {
    extends: join(process.cwd(), 'tsconfig.json'),
    compilerOptions: {
      rootDir: '.',
      lib: ['es2023', 'dom'],
      exactOptionalPropertyTypes: false,
      noEmit: true,
      incremental: false,
    },
    include: ['*.ts'],
  };
  await writeFile(join(directory, 'tsconfig.json'), JSON.stringify(config));
  await writeFile(join(directory, 'package.json'), JSON.stringify({ type: 'module' }));
  const compiler = join(require.resolve('typescript/package.json'), '..', 'bin', 'tsc');
  try {
    return (await run(process.execPath, [compiler, '-p', directory])).stdout;
  } catch (error) {
    return (error as { stdout: string }).stdout || String(error);
  }
}
