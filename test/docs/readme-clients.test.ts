import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { useStack } from '../support/stack.ts';

/** The clients in the README run as they are printed there, apart from the address and the key. */

const run = promisify(execFile);

interface Snippet {
  readonly title: string;
  readonly language: 'js' | 'python';
  readonly code: string;
}

function findSnippets(): Snippet[] {
  const [, section = ''] = /^## Clients\n(.*?)^### /ms.exec(readFileSync('README.md', 'utf8')) ?? [];
  return [...section.matchAll(/^```(js|python)\n(?:\/\/|#) (.*?):.*?\n(.*?)^```/gms)].map(
    ([, language, title, code]) => ({
      title: title!,
      language: language as Snippet['language'],
      code: code!,
    }),
  );
}

/** Python's packages are not installed for the tests; a machine may have them. */
const canImport = (code: string): boolean => {
  const imports = code.match(/^from .*$/gm)?.join('\n') ?? '';
  return spawnSync('python3', ['-c', imports]).status === 0;
};

test('the clients in the README work as printed', async (t) => {
  const stack = await useStack(t);
  const { apiKey } = await stack.createAccount();
  const snippets = findSnippets();
  t.deepEqual(
    snippets.map(({ title }) => title),
    ['Node', 'Python', 'LangChain JS', 'LangChain Python'],
  );
  const folder = await mkdtemp(join(tmpdir(), 'mg-clients-'));
  t.teardown(() => rm(folder, { recursive: true }));
  await symlink(resolve('node_modules'), join(folder, 'node_modules'));
  for (const [i, { title, language, code }] of snippets.entries()) {
    t.true(code.includes('http://127.0.0.1:8080/v1') && code.includes('mg-...'), title);
    if (language === 'python' && !canImport(code)) {
      t.log(`${title}: not run, its packages are not installed`);
      continue;
    }
    const file = join(folder, `${i}.${language === 'js' ? 'mjs' : 'py'}`);
    await writeFile(
      file,
      code.replace('http://127.0.0.1:8080/v1', `${stack.url}/v1`).replace('mg-...', apiKey),
    );
    const { stdout } = await run(language === 'js' ? process.execPath : 'python3', [file]);
    t.regex(stdout, /You said: Hello!/, title);
    if (code.includes('embeddings')) t.regex(stdout, /^512$/m, title);
  }
});
