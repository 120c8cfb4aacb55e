import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { LuaScript } from '../../../../shared/platform/redis/lua-script.ts';
import { useRedis } from '../../../support/use-redis.ts';

const redis = useRedis(test);

function writeScript(t: ExecutionContext, text: string): URL {
  const folder = mkdtempSync(join(tmpdir(), 'lua-script-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'a.lua'), text);
  return pathToFileURL(join(folder, 'a.lua'));
}

test('values reach the names that the file assigns, in whatever order they are passed', async (t) => {
  const file = writeScript(
    t,
    `-- Replies its values.
local second = KEYS[2] -- a key
local first = KEYS[1] -- a key
local one = ARGV[1] -- a text
local two = tonumber(ARGV[2]) -- a number
return {first, second, one, two + 1, #KEYS, #ARGV}
`,
  );
  const script = new LuaScript(file, ['two', 'first', 'one', 'second']);
  const values = { one: 'x', two: 41, second: 'b', first: 'a' };
  const expected = ['a', 'b', 'x', 42, 2, 2];
  t.deepEqual(await script.run(redis(), values), expected);
  t.deepEqual(await script.run(redis(), values), expected, 'by its hash');
  t.deepEqual(await script.runInOrder(redis(), values), expected);
  const transaction = redis().multi();
  script.addTo(transaction, values);
  t.deepEqual(await transaction.exec(), [[null, expected]]);
});

test('each item of a list has its keys and arguments', async (t) => {
  const file = writeScript(
    t,
    `-- Replies the values of its items.
local stream = KEYS[1] -- a key
local bound = ARGV[1] -- a number
local replies = {}
local eachKey, eachArg = 1, 1
while eachKey < #KEYS do
  local account = KEYS[eachKey + 1] -- a key
  local id = ARGV[eachArg + 2] -- a text
  local cost = ARGV[eachArg + 1] -- a text
  replies[#replies + 1] = {stream, bound, account, id, cost}
  eachKey, eachArg = eachKey + 1, eachArg + 2
end
return replies
`,
  );
  const script = new LuaScript(file, ['stream', 'bound'], { itemNames: ['account', 'id', 'cost'] });
  t.deepEqual(
    await script.run(redis(), { stream: 's', bound: 9 }, [
      { account: 'a', id: 'x', cost: 1 },
      { cost: 2, id: 'y', account: 'b' },
    ]),
    [
      ['s', '9', 'a', 'x', '1'],
      ['s', '9', 'b', 'y', '2'],
    ],
  );
  t.deepEqual(await script.run(redis(), { stream: 's', bound: 9 }), []);
});

test('constants that the file declares are defined, and comments are not sent', async (t) => {
  const text = `-- Replies a constant.
-- luacheck: read globals maxEntries name
local key = KEYS[1] -- a description
local number = tonumber(ARGV[1]) -- a description
  -- A note.
return {maxEntries * number, name}
`;
  const file = writeScript(t, text);
  const script = new LuaScript(file, ['key', 'number'], { constants: { maxEntries: 21, name: 'jobs' } });
  const values = { key: 'k', number: 2 };
  const sent: unknown[] = [];
  const spy = { eval: (...args: unknown[]) => Promise.resolve(sent.push(...args)) } as never;
  await script.runInOrder(spy, values);
  t.notRegex(String(sent[0]), /note|description/);
  t.deepEqual(await script.run(redis(), values), [42, 'jobs']);
});

test('names that differ from those of the file are an error when the program starts', (t) => {
  const file = writeScript(
    t,
    `-- luacheck: read globals bound
local list = KEYS[1] -- a list
for eachKey = 1, #KEYS - 1 do
  local item = KEYS[eachKey + 1] -- a key
end
`,
  );
  const constants = { bound: 1 };
  const itemNames = ['item'];
  t.notThrows(() => new LuaScript(file, ['list'], { itemNames, constants }));
  t.throws(() => new LuaScript(file, ['lists'], { itemNames, constants }), {
    message: /are list, not lists/,
  });
  t.throws(() => new LuaScript(file, ['list'], { constants }), {
    message: /of items of .* are item, not \./,
  });
  t.throws(() => new LuaScript(file, ['list'], { itemNames }), {
    message: /constants of .* are bound, not \./,
  });
});

test('positions with a gap or used twice are an error', (t) => {
  for (const numbers of [
    [1, 3],
    [2, 2],
    [1, 1],
  ]) {
    const file = writeScript(t, `local a = KEYS[${numbers[0]}]\nlocal b = KEYS[${numbers[1]}]\n`);
    t.throws(() => new LuaScript(file, ['a', 'b']), { message: /without gaps/ });
  }
});

test('every file says what it is for, and assigns each key and argument once, with a description', (t) => {
  const paths = ['api', 'workers', 'shared', 'scripts'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.lua'))
      .map((path) => join(folder, path)),
  );
  t.true(paths.length > 5);
  for (const path of paths) {
    const text = readFileSync(path, 'utf8');
    t.regex(text, /^(?:-- decisions? [\d, ]+\n--\n)?-- [A-Z]/, path);
    for (const [line] of text.matchAll(/^.*\b(?:KEYS|ARGV)\[.*$/gm))
      t.regex(
        line,
        /^(?:local \w+ = (?:tonumber\()?(?:KEYS|ARGV)\[\d+\]|\s+local \w+ = (?:tonumber\()?(?:KEYS|ARGV)\[each(?:Key|Arg) \+ \d+\])\)? -- \S/,
        path,
      );
  }
});

test('a list may have more items than fit on the stack as arguments of a call', async (t) => {
  const file = writeScript(
    t,
    `-- Counts its items.
local first = KEYS[1] -- a key
for eachArg = 0, #ARGV - 1, 1 do
  local text = ARGV[eachArg + 1] -- a text
end
return #ARGV
`,
  );
  const script = new LuaScript(file, ['first'], { itemNames: ['text'] });
  const items = Array.from({ length: 300_000 }, () => ({ text: 'x' }));
  t.is(await script.run(redis(), { first: 'a' }, items), items.length);
});
