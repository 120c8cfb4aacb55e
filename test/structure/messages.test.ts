import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { listMessages, type Message } from '../support/list-messages.ts';

const dist = fileURLToPath(new URL('../..', import.meta.url));
const messages = listMessages(dist);

/** Words that a native speaker stumbled over. */
const unclear =
  /\b(?:knows nothing|the operator's to|trouble behind|is no HTTP|are of no use|under way|come anew|anew\b|hold at most|for automation that has)/;

function describe(list: readonly Message[]): string {
  const files = [...new Set(list.map(({ file }) => file))];
  return files
    .map((name) => {
      const texts = new Set(list.filter(({ file }) => file === name).map(({ text }) => text));
      return `### ${name}\n\n${Array.from(texts, (text) => `- ${text}`).join('\n')}\n`;
    })
    .join('\n');
}

test('all messages of the product are written to one file, for a reader who wants to check them', (t) => {
  const audiences = [...new Set(messages.map(({ audience }) => audience))].toSorted();
  t.deepEqual(audiences, ['callers', 'callers, in Russian', 'operators', 'readers of the API description']);
  const parts = audiences.map(
    (audience) => `## For ${audience}\n\n${describe(messages.filter((one) => one.audience === audience))}`,
  );
  const path = join(dist, 'messages.md');
  writeFileSync(path, `# Messages\n\nEvery value that is filled in shows as …\n\n${parts.join('\n')}`);
  t.log(`${messages.length} messages are in ${path}`);
  t.true(messages.length > 500);
});

test('no message has words that readers stumbled over', (t) => {
  t.deepEqual(
    messages.filter(({ text }) => unclear.test(text)).map(({ file, text }) => `${file}: ${text}`),
    [],
  );
});
