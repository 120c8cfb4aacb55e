import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import OpenAI from 'openai';
import sharp from 'sharp';
import { formatBar } from '../../examples/progress-bar.ts';
import { startStack, type TestStack } from '../support/stack.ts';
import { runExample } from './run-example.ts';

let stack: TestStack;
let env: Record<string, string>;

test.before(async () => {
  stack = await startStack();
  const { apiKey } = await stack.createAccount();
  env = { MODEL_GATEWAY_URL: stack.url, OPENAI_API_KEY: apiKey };
});
test.after.always(() => stack.close());

const hints = 'examples/household-hints.txt';

test('semantic search lists the line that answers the question first, and reports the cost', async (t) => {
  const question = 'How do I get red wine out of a carpet?';
  const { code, stdout, stderr } = await runExample(['semantic-search', hints, question], env);
  t.is(code, 0, stderr);
  const hits = stdout.trimEnd().split('\n');
  t.is(hits.length, 5);
  t.regex(hits[0]!, /^0\.\d{3} {2}Blot spilled red wine/);
  const scores = hits.map((hit) => Number(hit.slice(0, 5)));
  t.deepEqual(
    scores,
    scores.toSorted((a, b) => b - a),
  );
  t.regex(
    stderr,
    /^50 lines and a question embedded for 0\.\d+ RUB\n$/,
    'no progress bar without a terminal',
  );
});

test('semantic search embeds a large file in several calls, and matches each line with its own vector', async (t) => {
  const file = join(stack.dir, 'large.txt');
  const lines = Array.from({ length: 700 }, (_, i) => `Room ${i} has ${i % 7} windows.`);
  lines.splice(613, 0, 'The volcano erupted and covered the island with ash.');
  await writeFile(file, lines.join('\n'));
  const { stdout, stderr, code } = await runExample(
    ['semantic-search', file, 'an eruption of lava', '--top', '1'],
    env,
  );
  t.is(code, 0, stderr);
  t.regex(stdout, /^0\.\d{3} {2}The volcano erupted[^\n]*\n$/);
});

test('embed-file writes the vector of every line, as the embeddings call returns it', async (t) => {
  const target = join(stack.dir, 'vectors.jsonl');
  const { code, stdout, stderr } = await runExample(['embed-file', hints, target], env);
  t.is(code, 0, stderr);
  t.is(stdout, `${target}\n`);
  t.regex(stderr, /^batch_[0-9a-f]{32}\n50 lines embedded for 0\.\d+ RUB\n$/);
  const texts = (await readFile(hints, 'utf8')).trimEnd().split('\n');
  const vectors = (await readFile(target, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { line: number; text: string; embedding: number[] })
    .sort((one, other) => one.line - other.line);
  t.deepEqual(
    vectors.map(({ line, text }) => [line, text]),
    texts.map((text, i) => [i + 1, text]),
  );
  const client = new OpenAI({ baseURL: `${stack.url}/v1`, apiKey: env['OPENAI_API_KEY']! });
  const { data } = await client.embeddings.create({
    model: 'use-lite-en-512',
    input: texts[7]!,
    encoding_format: 'float',
  });
  t.deepEqual(vectors[7]!.embedding, data[0]!.embedding);

  const [batch = ''] = stderr.split('\n');
  const again = await runExample(['embed-file', hints, target, '--batch', batch], env);
  t.is(again.code, 0, again.stderr);
  t.is(again.stderr, stderr, 'the same batch, which is not charged again');
});

test('embed-file reports lines that failed', async (t) => {
  const target = join(stack.dir, 'none.jsonl');
  const { code, stderr } = await runExample(['embed-file', hints, target, '--model', 'none'], env);
  t.is(code, 1);
  t.regex(stderr, /\n50 lines failed, such as line \d+: The model "none" does not exist/);
});

test('the filled part of a progress bar is proportional to the work done', (t) => {
  t.is(formatBar('Embedding', 0, 50), `Embedding ${'░'.repeat(30)} 0/50`);
  t.is(formatBar('Embedding', 25, 50), `Embedding ${'█'.repeat(15)}${'░'.repeat(15)} 25/50`);
  t.is(formatBar('Embedding', 50, 50), `Embedding ${'█'.repeat(30)} 50/50`);
});

test('chat prints the streamed answer to a question given as an argument', async (t) => {
  const { code, stdout, stderr } = await runExample(['chat', 'Good', 'morning!'], env);
  t.is(code, 0, stderr);
  t.regex(stdout, /Good morning!\n$/);
  t.regex(stderr, /^\d+ tokens, 0\.\d+ RUB\n$/);
});

test('chat without an argument answers every input line', async (t) => {
  const { code, stdout, stderr } = await runExample(['chat'], env, 'first question\n\nsecond question\n');
  t.is(code, 0, stderr);
  const answers = stdout.trimEnd().split('\n');
  t.is(answers.length, 2);
  t.regex(answers[0]!, /first question/);
  t.regex(answers[1]!, /second question/);
});

test('image writes a PNG of the requested size', async (t) => {
  const file = join(stack.dir, 'lighthouse.png');
  const args = ['image', 'a lighthouse at dusk', file, '--size', '512x512'];
  const { code, stdout, stderr } = await runExample(args, env);
  t.is(code, 0, stderr);
  t.is(stdout, `${file}\n`);
  const { format, width, height } = await sharp(await readFile(file)).metadata();
  t.deepEqual([format, width, height], ['png', 512, 512]);
});

test('an example can be run by its name through the common entry point', async (t) => {
  const { code, stdout } = await runExample(['main', 'chat', 'Hello!'], env);
  t.is(code, 0);
  t.regex(stdout, /Hello!/);
  const unknown = await runExample(['main', 'toString'], env);
  t.is(unknown.code, 2);
  t.is(
    unknown.stderr,
    'Usage: npm run example -- semantic-search|embed-file|chat|image|billing [arguments]\n',
  );
});

test('without a key the examples use the demo account of npm start', async (t) => {
  const { apiKey } = await stack.createAccount();
  const dataDir = await mkdtemp(join(tmpdir(), 'mg-example-'));
  t.teardown(() => rm(dataDir, { recursive: true }));
  await writeFile(join(dataDir, 'secrets.json'), JSON.stringify({ demoApiKey: apiKey }));
  const local = { DATA_DIR: dataDir, PORT: new URL(stack.url).port };
  const { code, stdout, stderr } = await runExample(['chat', 'Hello!'], local);
  t.is(code, 0, stderr);
  t.regex(stdout, /Hello!/);
  // OPENAI_API_KEY may be a vendor key for the catalog, so it is not sent to the gateway.
  const withVendorKey = await runExample(['chat', 'Hello!'], { ...local, OPENAI_API_KEY: 'sk-of-a-vendor' });
  t.is(withVendorKey.code, 0, withVendorKey.stderr);
});

test('an error that the user can fix is reported in one line', async (t) => {
  const nowhere = { DATA_DIR: join(stack.dir, 'nowhere') };
  const cases: [string[], Record<string, string>, RegExp][] = [
    [['chat', 'Hi'], nowhere, /^OPENAI_API_KEY is not set: set it to one that begins with mg-/],
    [['chat', 'Hi'], { ...env, MODEL_GATEWAY_URL: 'nonsense' }, /^"nonsense" is no address/],
    [['chat', 'Hi'], { ...env, MODEL_GATEWAY_URL: 'http://127.0.0.1:1' }, /^The gateway does not answer/],
    [['chat', 'Hi'], { ...env, OPENAI_API_KEY: `mg-${'x'.repeat(43)}` }, /^The gateway refused: 401 /],
    [['chat', 'Hi', '--model', 'none'], env, /^The gateway refused: 404 The model "none" does not exist/],
    [['chat', '--colour'], env, /^Unknown option '--colour'/],
    [['semantic-search', 'no-such-file', 'why?'], env, /^ENOENT: no such file/],
    [['semantic-search', hints], env, /^Usage: semantic-search <file>/],
    [['embed-file', hints], env, /^Usage: embed-file <file>/],
    [['image'], env, /^Usage: image "prompt"/],
  ];
  for (const [args, given, expected] of cases) {
    const { code, stdout, stderr } = await runExample(args, given);
    t.is(code, 1, args.join(' '));
    t.is(stdout, '');
    t.regex(stderr, expected);
    t.is(stderr.trimEnd().split('\n').length, 1, stderr);
  }
});
