import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import test from 'ava';

type Message = string | Readonly<Record<string, string>>;
type Catalog = Readonly<Record<string, Message>>;

/** The built pages: Vite names the file of each catalog. */
const build = fileURLToPath(new URL('../../web', import.meta.url));
const manifest = JSON.parse(readFileSync(join(build, '.vite', 'manifest.json'), 'utf8')) as Record<
  string,
  { file: string }
>;

const load = async (source: string): Promise<Catalog> =>
  ((await import(pathToFileURL(join(build, manifest[source]!.file)).href)) as { default: Catalog }).default;

/** Catalogs in English, with those in Russian beside them. */
const english = Object.keys(manifest).filter((source) =>
  /(?:(?:^|\/)messages\/en|\/messages\.en)\.ts$/.test(source),
);
const toRussian = (source: string): string => source.replace(/en\.ts$/, 'ru.ts');

const textsOf = (message: Message): string[] =>
  typeof message === 'string' ? [message] : Object.values(message);
const placeholdersOf = (text: string): string[] =>
  [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!).toSorted();

test('each text exists in both languages, with the same values filled in and all plural forms', async (t) => {
  t.true(english.length >= 10);
  for (const source of english) {
    const [en, ru] = await Promise.all([load(source), load(toRussian(source))]);
    t.deepEqual(Object.keys(ru).toSorted(), Object.keys(en).toSorted(), source);
    for (const [key, message] of Object.entries(en)) {
      const where = `${source}: ${key}`;
      const translated = ru[key]!;
      t.is(typeof translated, typeof message, where);
      const [expected] = textsOf(message).map(placeholdersOf);
      for (const text of [...textsOf(message), ...textsOf(translated)]) {
        // A singular may be written without its number.
        const names = placeholdersOf(text).filter((name) => name !== 'count' || typeof message === 'string');
        t.deepEqual(
          names,
          expected!.filter((name) => names.includes(name) || name !== 'count'),
          where,
        );
        t.not(text.trim(), '', where);
      }
      if (typeof message === 'string') continue;
      t.deepEqual(Object.keys(message).toSorted(), ['one', 'other'], where);
      t.deepEqual(Object.keys(translated).toSorted(), ['few', 'many', 'one', 'other'], where);
    }
  }
});

test('Russian texts have no Latin letters that look like Cyrillic ones, and address people as «вы»', async (t) => {
  const mixed = /[А-Яа-яЁё][A-Za-z]|[A-Za-z][А-Яа-яЁё]/;
  const capital = /(?<=[а-яё,] )(?:Вы|Вас|Вам|Ваш[а-яё]*)(?![А-Яа-яЁё])/;
  for (const source of english)
    for (const [key, message] of Object.entries(await load(toRussian(source))))
      for (const text of textsOf(message)) {
        t.notRegex(text, mixed, `${source}: ${key}`);
        t.notRegex(text, capital, `${source}: ${key}`);
      }
});
