import test from 'ava';
import type { CatalogModel } from '../../../shared/catalog/catalog-schema.ts';
import { fillTemperature } from '../../../workers/runs/fill-temperature.ts';

const messages = [{ role: 'user', content: 'Hello' }];
const modelOf = (reasoning: boolean | null) =>
  ({ published: { reasoning } }) as Pick<CatalogModel, 'published'>;
const fill = (fields: object, reasoning: boolean | null = null, drops: string[] = []): unknown =>
  fillTemperature({ messages, ...fields }, modelOf(reasoning), { drops: new Set(drops) })['temperature'];

test('a chat without a temperature gets the default, except for models that reason and routes that leave it out', (t) => {
  t.is(fill({}), 0.7);
  t.is(fill({}, false), 0.7);
  t.is(fill({}, true), undefined);
  t.is(fill({}, null, ['default:temperature']), undefined);
});

test('what the caller set stays', (t) => {
  t.is(fill({ temperature: 0 }, true, ['default:temperature']), 0);
  t.is(fill({ temperature: null }), null);
});
