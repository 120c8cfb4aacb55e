import { ConfigError } from '../platform/runtime/config-error.ts';
import { buildModel, buildRoute } from './build-model.ts';
import { formatLocation, type CatalogIssue } from './catalog-issue.ts';
import {
  upstreamKinds,
  type Catalog,
  type CatalogModel,
  type CatalogUpstream,
  type ModelEntry,
  type RouteEntry,
  type UnusableRoute,
  type UpstreamEntry,
  type UpstreamKindRules,
} from './catalog-schema.ts';
import { checkCatalog } from './check-catalog.ts';
import { readKeyVariable, usableHeader, usableKey } from './check-entries.ts';
import { findSuspiciousPrices, findUnlistedOptions } from './check-pricing.ts';
import { findBatchLimits, findOpenAiProfile } from './openai-profile.ts';
import { readYaml, type YamlProblem, type YamlSource } from './yaml-source.ts';
import { stripTrailing } from '../platform/runtime/strip-trailing.ts';

export type CatalogProblem = YamlProblem;

export interface ParseCatalogOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Prefix of the line and column in messages. */
  readonly fileName: string;
  /** YYYY-MM-DD. The start day of a price without `since`, unless `findPriceDay` returns one. */
  readonly today: string;
  /** Returns the day on which this version of a model's price was first seen. */
  readonly findPriceDay?: (modelId: string, priceVersion: string) => string | undefined;
}

/** An invalid catalog. The message lists every problem, one per line, and contains no value from the file. */
export class CatalogError extends ConfigError {
  readonly problems: readonly CatalogProblem[];

  constructor(fileName: string, problems: readonly CatalogProblem[]) {
    super(problems.map((problem) => formatProblem(fileName, problem)).join('\n'));
    this.problems = problems;
  }
}

export function formatProblem(fileName: string, { line, column, message }: CatalogProblem): string {
  return `${fileName}:${line}:${column} ${message}`;
}

/**
 * Parses the text of a catalog.
 * @throws CatalogError that lists all problems
 */
export function parseCatalog(text: string, options: ParseCatalogOptions): Catalog {
  const source = readYaml(text);
  if (source.problems.length > 0) throw new CatalogError(options.fileName, sortProblems(source.problems));
  const file = checkCatalog(source.value);
  if (file.issues.length > 0) {
    throw new CatalogError(
      options.fileName,
      sortProblems(file.issues.map((issue) => toProblem(source, issue))),
    );
  }

  const isBuiltin = ({ upstream }: RouteEntry): boolean => file.upstreams.get(upstream)?.kind === 'builtin';
  const suspicious = [...file.models].flatMap(([index, entry]) => {
    const at = ['models', index];
    return [
      ...findSuspiciousPrices(entry, at),
      ...findUnlistedOptions(entry, at, entry.routes.every(isBuiltin)),
    ];
  });
  const warnings = sortProblems(suspicious.map((issue) => toProblem(source, issue))).map((problem) =>
    formatProblem(options.fileName, problem),
  );
  const upstreams = new Map<string, CatalogUpstream>();
  const keyProblems = new Map<string, string[]>();
  for (const [name, entry] of file.upstreams) {
    const { apiKeys, problems } = resolveKeys(entry.apiKeys ?? [], options.env);
    const { headers, problems: headerProblems } = resolveHeaders(entry.headers ?? {}, options.env);
    const allProblems = [...problems, ...headerProblems];
    if (allProblems.length > 0) keyProblems.set(name, allProblems);
    if (headerProblems.length === 0 && (problems.length === 0 || apiKeys.length > 0))
      upstreams.set(name, buildUpstream(name, entry, apiKeys, headers));
  }
  const entries = [...file.models.values()];
  const models = entries.map((entry) =>
    buildModel(
      entry,
      upstreams,
      (priceVersion) => options.findPriceDay?.(entry.id, priceVersion) ?? options.today,
    ),
  );
  for (const [name, problems] of keyProblems) {
    warnings.push(describeMissingKeys(name, problems, upstreams.has(name), entries, models));
  }

  const byName = new Map(
    models.flatMap((model) => [model.id, ...model.aliases].map((name) => [name, model])),
  );
  const unusableRoutes = new Map(
    entries.map((entry) => [
      entry.id,
      entry.routes.flatMap((route): UnusableRoute[] => {
        const { upstream: name } = route;
        if (upstreams.has(name)) return [];
        const upstream = buildUpstream(name, file.upstreams.get(name)!, [], {});
        return [{ route: buildRoute(entry, route, upstream), problems: keyProblems.get(name) ?? [] }];
      }),
    ]),
  );
  return {
    models,
    upstreams: [...upstreams.values()],
    warnings,
    unusableRoutes,
    find: (idOrAlias) => byName.get(idOrAlias),
  };
}

function toProblem(source: YamlSource, { location, message, part }: CatalogIssue): CatalogProblem {
  return { ...source.locate(location, part), message: `${formatLocation(location)} ${message}` };
}

function sortProblems(problems: readonly CatalogProblem[]): CatalogProblem[] {
  return problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
}

/** Returns the usable keys, and the reasons why others are not usable. */
function resolveKeys(
  keys: readonly string[],
  env: ParseCatalogOptions['env'],
): { apiKeys: string[]; problems: string[] } {
  const apiKeys = new Set<string>();
  const problems: string[] = [];
  for (const key of keys) {
    const variable = readKeyVariable(key);
    // A secret mounted from a file often ends with a line feed.
    const given: unknown = variable === null ? key : env[variable];
    // Ignore inherited properties, as in `env:constructor`.
    const value = typeof given === 'string' ? given.trim() : '';
    if (usableKey.test(value)) apiKeys.add(value);
    else problems.push(value === '' ? `${variable} is not set` : `${variable} does not contain a usable key`);
  }
  return { apiKeys: [...apiKeys], problems };
}

/** Returns the headers in lower case, and the reasons why some have no value. */
function resolveHeaders(
  headers: Readonly<Record<string, string>>,
  env: ParseCatalogOptions['env'],
): { headers: Record<string, string>; problems: string[] } {
  const resolved: Record<string, string> = {};
  const problems: string[] = [];
  for (const [name, text] of Object.entries(headers)) {
    const variable = readKeyVariable(text);
    const given: unknown = variable === null ? text : env[variable];
    const value = typeof given === 'string' ? given.trim() : '';
    if (usableHeader.test(value)) resolved[name.toLowerCase()] = value;
    else problems.push(value === '' ? `${variable} is not set` : `${variable} is not a usable header`);
  }
  return { headers: resolved, problems };
}

function describeMissingKeys(
  upstream: string,
  problems: readonly string[],
  isUsable: boolean,
  entries: readonly ModelEntry[],
  models: readonly CatalogModel[],
): string {
  const reason = problems.join(', ');
  if (isUsable) return `upstream ${upstream} is used without some of its keys: ${reason}`;
  const inactive = models
    .filter(
      (model, i) =>
        model.routes.length === 0 && entries[i]!.routes.some((route) => route.upstream === upstream),
    )
    .map((model) => model.id);
  const effect =
    inactive.length === 0 ? 'all its models have other upstreams' : `inactive models: ${inactive.join(', ')}`;
  return `upstream ${upstream} is skipped: ${reason}; ${effect}`;
}

/**
 * A stream that sends nothing for this long is considered hung. Models that reason silently for longer need a higher
 * value.
 */
const defaultStreamFirstByteMs = 120_000;

function buildUpstream(
  name: string,
  entry: UpstreamEntry,
  apiKeys: readonly string[],
  headers: Readonly<Record<string, string>>,
): CatalogUpstream {
  const rules: UpstreamKindRules = upstreamKinds[entry.kind];
  const defaultUrl = typeof rules.baseUrl === 'object' ? rules.baseUrl.default : '';
  const baseUrl = stripTrailing(entry.baseUrl ?? defaultUrl, '/');
  const batch =
    entry.kind === 'openai' ? findBatchLimits(findOpenAiProfile(entry.dialect ?? null, baseUrl, '')) : {};
  return {
    name,
    kind: entry.kind,
    baseUrl,
    profile: entry.dialect ?? null,
    headers,
    apiKeys,
    maxConcurrency: entry.maxConcurrency ?? rules.maxConcurrency,
    maxConcurrencyPerKey: entry.maxConcurrencyPerKey ?? null,
    timeoutMs: entry.timeoutMs,
    connectTimeoutMs: entry.connectTimeoutMs,
    firstByteTimeoutMs: entry.firstByteTimeoutMs ?? entry.timeoutMs,
    streamFirstByteTimeoutMs:
      entry.streamFirstByteTimeoutMs ??
      entry.firstByteTimeoutMs ??
      Math.min(entry.timeoutMs, defaultStreamFirstByteMs),
    betweenChunksTimeoutMs: entry.betweenChunksTimeoutMs,
    drops: entry.drops,
    maxBatchInputs: entry.maxBatchInputs ?? batch.maxBatchInputs ?? rules.maxBatchInputs,
    maxBatchTokens: entry.maxBatchTokens ?? batch.maxBatchTokens ?? rules.maxBatchTokens,
    imageUrls: entry.imageUrls ?? rules.imageUrls,
    disconnectGraceMs: entry.disconnectGraceMs ?? rules.disconnectGraceMs,
    sendsTraceparent: entry.traces === 'on',
  };
}
