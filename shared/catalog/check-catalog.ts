import type { TSchema } from 'typebox';
import { compileChecker } from '../contract/validation.ts';
import { CatalogOutline, ModelEntry, UpstreamEntry } from './catalog-schema.ts';
import { checkModel, checkUpstream } from './check-entries.ts';
import { isRecord } from '../encoding/json-record.ts';
import { suggestName, type CatalogIssue } from './catalog-issue.ts';
import type { Location } from './yaml-source.ts';

export interface CheckedFile {
  /** The entries that match the schema, completed with defaults, by their name or index in the file. */
  readonly upstreams: ReadonlyMap<string, UpstreamEntry>;
  readonly models: ReadonlyMap<number, ModelEntry>;
  readonly issues: readonly CatalogIssue[];
}

const findOutlineErrors = compileChecker(CatalogOutline, 'json');
const findUpstreamErrors = compileChecker(UpstreamEntry, 'json');
const findModelErrors = compileChecker(ModelEntry, 'json');

/** Finds everything that is wrong with a catalog's data. Fills in defaults in place. */
export function checkCatalog(file: unknown): CheckedFile {
  const issues: CatalogIssue[] = [];
  const upstreams = new Map<string, UpstreamEntry>();
  const models = new Map<number, ModelEntry>();

  /** Whether the value matches the schema. Unknown fields are reported as issues but do not affect the result. */
  const matchesSchema = (
    value: unknown,
    schema: TSchema,
    find: ReturnType<typeof compileChecker>,
    at: Location,
  ): boolean => {
    const errors = find(value).map(({ loc, msg }) => ({ location: [...at, ...loc], message: msg }));
    issues.push(...errors, ...findUnknownFields(value, schema, at));
    return errors.length === 0;
  };

  matchesSchema(file, CatalogOutline, findOutlineErrors, []);
  const outline = isRecord(file) ? file : {};
  const upstreamEntries = isRecord(outline['upstreams']) ? outline['upstreams'] : {};
  const modelEntries = Array.isArray(outline['models']) ? (outline['models'] as unknown[]) : [];

  for (const [name, entry] of Object.entries(upstreamEntries)) {
    const at = ['upstreams', name];
    if (!matchesSchema(entry, UpstreamEntry, findUpstreamErrors, at)) continue;
    upstreams.set(name, entry as UpstreamEntry);
    issues.push(...checkUpstream(name, entry as UpstreamEntry, at));
  }
  const kinds = new Map(
    Object.keys(upstreamEntries).map((name) => [name, upstreams.get(name)?.kind ?? null]),
  );
  for (const [index, entry] of modelEntries.entries()) {
    const at = ['models', index];
    if (!matchesSchema(entry, ModelEntry, findModelErrors, at)) continue;
    models.set(index, entry as ModelEntry);
    issues.push(...checkModel(entry as ModelEntry, kinds, at));
  }
  issues.push(...findRepeatedIds(models));
  return { upstreams, models, issues };
}

/** Finds unknown fields at any depth. Most are misspelt and would silently do nothing. */
function findUnknownFields(value: unknown, schema: TSchema, at: Location): CatalogIssue[] {
  const { properties, items } = schema as { properties?: Record<string, TSchema>; items?: TSchema };
  if (Array.isArray(value) && items !== undefined) {
    return value.flatMap((item, index) => findUnknownFields(item, items, [...at, index]));
  }
  if (!isRecord(value) || properties === undefined) return [];
  return Object.entries(value).flatMap(([name, inner]): CatalogIssue[] => {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (known !== undefined) return findUnknownFields(inner, known, [...at, name]);
    const message = `is not a known field${suggestName(name, Object.keys(properties))}`;
    return [{ location: [...at, name], message, part: 'key' }];
  });
}

/** Ids and aliases share one namespace: a request may use either. */
function findRepeatedIds(models: ReadonlyMap<number, ModelEntry>): CatalogIssue[] {
  const issues: CatalogIssue[] = [];
  const firstUse = new Map<string, string>();
  const claim = (name: string, location: Location, path: string): void => {
    const first = firstUse.get(name);
    if (first === undefined) firstUse.set(name, path);
    else issues.push({ location, message: `repeats "${name}", which is already ${first}` });
  };
  for (const [index, model] of models) {
    claim(model.id, ['models', index, 'id'], `models[${index}].id`);
    for (const [i, alias] of model.aliases.entries()) {
      claim(alias, ['models', index, 'aliases', i], `models[${index}].aliases[${i}]`);
    }
  }
  return issues;
}
