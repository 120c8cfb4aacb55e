import {
  upstreamKinds,
  type ModelEntry,
  type UpstreamEntry,
  type UpstreamKind,
  type UpstreamKindRules,
} from './catalog-schema.ts';
import { droppedDefault } from './dropped-default.ts';
import { suggestName, type CatalogIssue } from './catalog-issue.ts';
import { checkPricing } from './check-pricing.ts';
import type { Location } from './yaml-source.ts';

/** Checks of upstreams and models that a schema cannot express. Pure. */

const upstreamName = /^[A-Za-z0-9][\w.-]{0,63}$/;
const modelId = /^[A-Za-z0-9][\w.:/@+-]{0,127}$/;
/** Model ids that would clash with the path of an API operation. */
const reservedIds = new Set(['status', 'history']);
const imageSize = /^[1-9]\d{0,4}x[1-9]\d{0,4}$/;

const keyFromEnv = /^env:([A-Za-z_]\w*)$/;
/** Characters allowed in an HTTP header. */
export const usableKey = /^[\x21-\x7e]+$/;
/** Also allows spaces within. */
export const usableHeader = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
const headerName = /^[\w!#$%&'*+.^`|~-]{1,100}$/;
/** Headers that describe the request itself, or its connection. */
const ownHeaders = new Set([
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Returns the variable that `env:NAME` refers to, or null for a literal key. */
export function readKeyVariable(key: string): string | null {
  return keyFromEnv.exec(key)?.[1] ?? null;
}

export function checkUpstream(name: string, entry: UpstreamEntry, at: Location): CatalogIssue[] {
  const issues: CatalogIssue[] = [];
  const add = (location: Location, message: string, part: 'value' | 'key' = 'value'): void => {
    issues.push({ location: [...at, ...location], message, part });
  };
  if (!upstreamName.test(name)) {
    add([], 'must have a name of at most 64 letters, digits, dots, dashes and underscores', 'key');
  }
  const rules: UpstreamKindRules = upstreamKinds[entry.kind];
  if (rules.baseUrl === 'none') {
    if (entry.baseUrl !== undefined) add(['baseUrl'], `is not allowed for kind ${entry.kind}`, 'key');
    if (entry.apiKeys !== undefined) add(['apiKeys'], `is not allowed for kind ${entry.kind}`, 'key');
  } else if (entry.baseUrl !== undefined) {
    const problem = findUrlProblem(entry.baseUrl) ?? findVersionProblem(entry.kind, entry.baseUrl);
    if (problem !== null) add(['baseUrl'], problem);
  } else if (rules.baseUrl === 'required') {
    add(['baseUrl'], `is required for kind ${entry.kind}`);
  }
  checkDrops(entry.drops, ['drops'], add);
  for (const [i, key] of (entry.apiKeys ?? []).entries()) {
    // Never repeat the text of a key, even if it was meant to be a variable's name.
    if (/^\$\{?\w+\}?$/.test(key)) {
      add(['apiKeys', i], 'must be written as env:NAME to use the variable NAME');
    } else if (key.startsWith('env:')) {
      if (readKeyVariable(key) === null) {
        add(['apiKeys', i], 'must be env:NAME with a name of letters, digits and underscores');
      }
    } else if (!usableKey.test(key)) {
      add(['apiKeys', i], 'must be printable ASCII without spaces');
    }
  }
  for (const [header, value] of Object.entries(entry.headers ?? {})) {
    if (!headerName.test(header)) add(['headers', header], 'is not the name of an HTTP header', 'key');
    else if (ownHeaders.has(header.toLowerCase())) add(['headers', header], 'is set by the gateway', 'key');
    if (/^\$\{?\w+\}?$/.test(value)) {
      add(['headers', header], 'must be written as env:NAME to use the variable NAME');
    } else if (value.startsWith('env:') && readKeyVariable(value) === null) {
      add(['headers', header], 'must be env:NAME with a name of letters, digits and underscores');
    } else if (!usableHeader.test(value)) {
      add(['headers', header], 'must be printable ASCII');
    }
  }
  if (entry.headers !== undefined && rules.baseUrl === 'none')
    add(['headers'], `is not allowed for kind ${entry.kind}`, 'key');
  if (entry.dialect !== undefined && entry.kind !== 'openai')
    add(['dialect'], 'is only allowed for kind openai', 'key');
  return issues;
}

/** Reports a base URL that ends with the version: the dialect appends a path that starts with it. */
function findVersionProblem(kind: UpstreamKind, text: string): string | null {
  const versions: Partial<Record<UpstreamKind, RegExp>> = { anthropic: /\/v1\/*$/, gemini: /\/v1beta\/*$/ };
  return versions[kind]?.test(text) === true ? `must not include the version: kind ${kind} adds it` : null;
}

function findUrlProblem(text: string): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    return 'must be an http or https URL';
  if (url.username !== '' || url.password !== '')
    return 'must not contain a user name or a password; put keys in apiKeys';
  return null;
}

/** @param upstreams the kinds of all upstreams in the file; null for one whose entry is invalid */
export function checkModel(
  model: ModelEntry,
  upstreams: ReadonlyMap<string, UpstreamKind | null>,
  at: Location,
): CatalogIssue[] {
  const issues: CatalogIssue[] = [];
  const add = (location: Location, message: string, part: 'value' | 'key' = 'value'): void => {
    issues.push({ location: [...at, ...location], message, part });
  };
  const checkId = (id: string, location: Location): void => {
    if (!modelId.test(id))
      add(location, 'must have at most 128 characters: letters, digits and . _ : / @ + -');
    else if (reservedIds.has(id)) add(location, `must not be "${id}", which is a path of the API`);
  };
  checkId(model.id, ['id']);
  for (const [i, alias] of model.aliases.entries()) checkId(alias, ['aliases', i]);

  if (model.type === 'embedding') checkDimensions(model, add);
  else {
    for (const name of ['dimensions', 'embeddingCache', 'special_tokens'] as const) {
      if (model[name] !== undefined) add([name], 'is only allowed for embedding models', 'key');
    }
  }
  if (model.type === 'image') checkSizes(model, add);
  if (model.max_output_tokens !== undefined && model.max_output_tokens > model.context) {
    add(['max_output_tokens'], 'must not exceed context');
  }
  for (const name of ['reasoning_effort', 'image_quality'] as const) {
    const option = model[name];
    if (option?.choices && option.default && !option.choices.includes(option.default)) {
      add([name, 'default'], `must be one of: ${option.choices.join(', ')}`);
    }
  }
  for (const [i, type] of (model.supported_file_types ?? []).entries()) {
    if (!/^[a-z0-9]+$/.test(type)) {
      add(['supported_file_types', i], 'must be a lowercase file extension without a dot, such as pdf');
    }
  }
  const routeNames = new Set<string>();
  for (const [i, route] of model.routes.entries()) {
    checkDrops(route.drops, ['routes', i, 'drops'], add);
    const name = `${route.upstream} ${route.model ?? model.id}`;
    if (routeNames.has(name))
      add(['routes', i], 'repeats a route of this model: remove one, and increase the weight of the other');
    routeNames.add(name);
  }
  issues.push(...checkPricing(model.pricing, [...at, 'pricing']));
  for (const [i, route] of model.routes.entries()) {
    if (route.cost !== undefined) issues.push(...checkPricing(route.cost, [...at, 'routes', i, 'cost']));
    const kind = upstreams.get(route.upstream);
    if (kind === null) continue;
    if (kind !== undefined) {
      if (route.accepts.length > 0 && kind !== 'openai')
        add(['routes', i, 'accepts'], 'is only allowed for upstreams of kind openai', 'key');
      const { serves }: UpstreamKindRules = upstreamKinds[kind];
      if (!serves.includes(model.type)) {
        add(['routes', i, 'upstream'], `is of kind ${kind}, which has no models of type ${model.type}`);
      }
      continue;
    }
    const suggestion = suggestName(route.upstream, [...upstreams.keys()]);
    add(['routes', i, 'upstream'], `refers to "${route.upstream}", which is not in upstreams${suggestion}`);
  }
  return issues;
}

type Add = (location: Location, message: string, part?: 'value' | 'key') => void;

function checkDrops(drops: readonly string[], location: Location, add: Add): void {
  for (const [i, name] of drops.entries()) {
    if (name.startsWith('default:') && name !== droppedDefault)
      add([...location, i], `must be a request field, or ${droppedDefault}`);
  }
}

function checkDimensions({ dimensions }: ModelEntry, add: Add): void {
  if (dimensions === undefined) {
    add(['dimensions'], 'is required for an embedding model, such as {default: 1536, adjustable: true}');
    return;
  }
  const { default: length, adjustable, choices, max } = dimensions;
  if (choices !== undefined && max !== undefined)
    add(['dimensions', 'max'], 'cannot be combined with choices', 'key');
  for (const [name, bound] of [
    ['choices', choices],
    ['max', max],
  ] as const) {
    if (bound !== undefined && adjustable === false) {
      add(['dimensions', name], 'is only allowed for adjustable dimensions', 'key');
    }
  }
  if (choices !== undefined && !choices.includes(length)) {
    add(['dimensions', 'default'], `must be one of: ${choices.join(', ')}`);
  }
  if (max !== undefined && max < length) add(['dimensions', 'max'], 'must not be smaller than default');
}

function checkSizes({ size }: ModelEntry, add: Add): void {
  if (size?.length === 0) add(['size'], 'must list at least one size, or be omitted');
  for (const [i, text] of (size ?? []).entries()) {
    if (!imageSize.test(text)) add(['size', i], 'must be WIDTHxHEIGHT in pixels, such as 1024x1024');
  }
}
