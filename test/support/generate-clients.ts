import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ExecutionContext } from 'ava';

const run = promisify(execFile);
const require = createRequire(import.meta.url);

// Plain JavaScript that runs before anything is compiled, so it is outside the compiled output.
const program = new URL('../../../scripts/bootstrap/web-types.mjs', import.meta.url);

/** Returns the types that openapi-typescript generates for an OpenAPI document. */
export async function generateTypes(document: string): Promise<string> {
  const { generateTypes: generate } = (await import(program.href)) as {
    generateTypes: (document: string) => Promise<string>;
  };
  return await generate(document);
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
