import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'ava';

const skipped = new Set(['node_modules', 'dist', '.data', '.git']);

function* findPapers(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (skipped.has(entry.name)) continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* findPapers(path);
    else if (path.endsWith('.md')) yield path;
  }
}

const withoutCode = (text: string): string =>
  text.replaceAll(/^```.*?^```/gms, '').replaceAll(/`[^`\n]*`/g, '');

/** A heading's anchor, as GitHub makes it. */
const toAnchor = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');

function anchorsOf(path: string): string[] {
  const text = readFileSync(path, 'utf8').replaceAll(/^```.*?^```/gms, '');
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => toAnchor(heading!));
}

const papers = [...findPapers('.')];

test('every relative link in the papers leads to a file that is there, and to a heading it has', (t) => {
  t.true(papers.includes('README.md') && papers.includes('docs/architecture.md'));
  for (const paper of papers) {
    for (const [, target] of withoutCode(readFileSync(paper, 'utf8')).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target!)) continue;
      const [file, anchor] = target!.split('#') as [string, string?];
      const path = file === '' ? paper : join(dirname(paper), file);
      if (!existsSync(path)) t.fail(`${paper}: ${target} is not there`);
      else if (anchor !== undefined && !(statSync(path).isFile() && anchorsOf(path).includes(anchor)))
        t.fail(`${paper}: ${target} has no such heading`);
    }
  }
  t.pass();
});

test('every page of docs/ can be reached from the README', (t) => {
  const reached = new Set(['README.md']);
  for (const paper of reached) {
    for (const [, target] of withoutCode(readFileSync(paper, 'utf8')).matchAll(/\]\(([^)#\s]+\.md)/g)) {
      if (!/^[a-z]+:/.test(target!)) reached.add(join(dirname(paper), target!));
    }
  }
  const pages = papers.filter((paper) => paper.startsWith('docs/'));
  t.deepEqual(
    pages.filter((page) => !reached.has(page)),
    [],
  );
});
