import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { parse } from 'acorn';
import test from 'ava';
import { describeApi } from '../../../../../api/description/describe-api.ts';
import { guideNames } from '../../../../../api/pages/guide-names.ts';
import { usesCookies } from '../../../../../api/pages/docs/samples/call.ts';
import { listRequests, writeSamples } from '../../../../../api/pages/docs/render-examples.ts';
import { jsNotation, pythonNotation, writeLiteral } from '../../../../../api/pages/write-literal.ts';

/** The blocks of code in a language of all guides. */
const listGuideCode = (language: string): [name: string, code: string][] =>
  ['en', 'ru'].flatMap((folder) =>
    guideNames.flatMap((name) => {
      const text = readFileSync(`docs/guides/${folder}/${name}.md`, 'utf8');
      const blocks = text.split('```').filter((_, i) => i % 2 === 1);
      return blocks
        .filter((block) => block.startsWith(`${language}\n`))
        .map((block): [string, string] => [`${folder}/${name}`, block.slice(language.length)]);
    }),
  );

const { paths } = describeApi('https://gateway.test');

const all = Object.entries(paths).flatMap(([path, item]) =>
  Object.entries(item).flatMap(([method, operation]) =>
    listRequests({ serverUrl: 'https://gateway.test', method, path, operation }).map(({ call }) => ({
      name: `${operation.operationId} ${call.contentType}`,
      samples: writeSamples(call),
      isForSession: usesCookies(call.operation),
    })),
  ),
);

test('examples for Node are modules that parse, and use no key but that of the environment', (t) => {
  for (const { name, samples, isForSession } of all) {
    if (samples.node === undefined) {
      t.true(isForSession, name);
      continue;
    }
    const code = samples.node;
    t.notThrows(() => parse(code, { ecmaVersion: 'latest', sourceType: 'module' }), `${name}\n${code}`);
    t.regex(code, /https:\/\/gateway\.test\//, name);
    t.notRegex(code, /mg-\w/, name);
  }
  for (const [name, code] of listGuideCode('js'))
    t.notThrows(() => parse(code, { ecmaVersion: 'latest', sourceType: 'module' }), `${name}\n${code}`);
});

/** Machines without Python only check the others. */
const hasPython = (): boolean => {
  try {
    execFileSync('python3', ['--version']);
    return true;
  } catch {
    return false;
  }
};

test('examples for Python compile', (t) => {
  if (!hasPython()) {
    t.pass();
    return;
  }
  const programs = [
    ...listGuideCode('python'),
    ...all.flatMap(({ name, samples }) => (samples.python === undefined ? [] : [[name, samples.python]])),
  ];
  t.true(programs.length > 60);
  const script = 'import json, sys\nfor name, code in json.load(sys.stdin): compile(code, name, "exec")';
  t.notThrows(() => execFileSync('python3', ['-c', script], { input: JSON.stringify(programs) }));
});

test('values are written as the language writes them, and mean the same', (t) => {
  const value = { 'a-b': [1, -2.5, true, false, null], text: `it's "a" \\ \n\u2028`, o: {}, l: [] };
  const js = writeLiteral(value, jsNotation);
  // eslint-disable-next-line no-eval
  t.deepEqual((0, eval)(`(${js})`), value);
  t.is(writeLiteral({ on: true, off: null }, pythonNotation), '{"on": True, "off": None}');
});
