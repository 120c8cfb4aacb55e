import { defaultSpecialTokens, replyStartTokens, tokensPerMessage } from '../../catalog/added-tokens.ts';
import type { CatalogModel } from '../../catalog/catalog-schema.ts';
import { computeCost, noUsage, type Usage } from '../../catalog/cost.ts';
import { findDefaultSize, listQualities, listSizes } from '../../catalog/image-options.ts';
import { acceptsModelType, type BatchEndpoint } from '../../contract/batch-terms.ts';
import { invalidField, type AppError } from '../../contract/errors.ts';
import { modelDisabled, modelNotFound } from '../../contract/model-errors.ts';
import type { FileVerdict, LineGroup } from './file-verdict.ts';

/** What a chat without a limit of its output is assumed to generate, per choice. */
const assumedOutputTokens = 1_024;

/** The prices that apply. */
export interface EstimateCatalog {
  find(idOrAlias: string): CatalogModel | undefined;
  isActive(model: CatalogModel): boolean;
}

/** What the lines with one model will probably cost. */
export interface ModelEstimate {
  /** The id of the model, or the name in the lines if there is no such model. Null for lines without a model. */
  readonly model: string | null;
  readonly lines: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costNano: bigint;
  /** Why these lines cannot run. Null if they can. */
  readonly error: AppError | null;
}

export interface FileEstimate {
  readonly lines: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costNano: bigint;
  /** In the order of their first lines. */
  readonly models: readonly ModelEstimate[];
}

/**
 * Estimates what a batch of the file's lines will cost at the current prices. Lines that cannot run cost nothing. Prompts
 * are counted with what the formats of vendors add to each message and input, but without images, tools, and the
 * instructions of a vendor.
 */
export function estimateFile(
  { groups, other }: Pick<FileVerdict, 'groups' | 'other'>,
  endpoint: BatchEndpoint,
  catalog: EstimateCatalog,
): FileEstimate {
  const models = new Map<string | null, ModelEstimate>();
  for (const group of groups) {
    const estimate = estimateGroup(group, endpoint, catalog);
    const known = models.get(estimate.model);
    models.set(estimate.model, known === undefined ? estimate : { ...known, ...sumOf([known, estimate]) });
  }
  const all = [...models.values()];
  if (other !== null) all.push(estimateOther(other, all));
  return { ...sumOf(all), models: all };
}

function estimateGroup(group: LineGroup, endpoint: BatchEndpoint, catalog: EstimateCatalog): ModelEstimate {
  const model = group.model === null ? undefined : catalog.find(group.model);
  const base = { lines: group.lines, inputTokens: group.tokens };
  const failed = (error: AppError, name: string | null): ModelEstimate => ({
    ...base,
    model: name,
    outputTokens: 0,
    costNano: 0n,
    error,
  });
  if (model === undefined) return failed(modelNotFound(group.model ?? ''), group.model);
  if (!acceptsModelType(endpoint, model.type)) {
    const msg = `"${model.id}" is a model of type ${model.type}, which ${endpoint} does not accept.`;
    return failed(invalidField(['body', 'model'], msg), model.id);
  }
  if (!catalog.isActive(model)) return failed(modelDisabled(model.id), model.id);
  const inputTokens = group.tokens + countAddedTokens(group, model);
  const outputTokens = countOutputTokens(group, model);
  return {
    ...base,
    model: model.id,
    inputTokens,
    outputTokens,
    costNano: computeGroupCost(group, model, inputTokens, outputTokens),
    error: null,
  };
}

/** As a single request reserves them. */
function countAddedTokens(
  { lines, messages = lines, inputs }: LineGroup,
  { type, specialTokens }: CatalogModel,
): number {
  switch (type) {
    case 'embedding':
      return (specialTokens ?? defaultSpecialTokens) * inputs;
    case 'chat':
    case 'vision':
      return replyStartTokens * lines + tokensPerMessage * messages;
    case 'image':
      return 0;
    default:
      return type satisfies never;
  }
}

/** Assumes that the lines beyond the groups cost as much as the others on average. */
function estimateOther(other: LineGroup, models: readonly ModelEstimate[]): ModelEstimate {
  const { lines, outputTokens, costNano } = sumOf(models);
  return {
    model: 'other',
    lines: other.lines,
    inputTokens: other.tokens,
    outputTokens: Math.round((outputTokens / lines) * other.lines),
    costNano: (costNano * BigInt(other.lines)) / BigInt(lines),
    error: null,
  };
}

function sumOf(estimates: readonly ModelEstimate[]) {
  const sum = { lines: 0, inputTokens: 0, outputTokens: 0, costNano: 0n };
  for (const one of estimates) {
    sum.lines += one.lines;
    sum.inputTokens += one.inputTokens;
    sum.outputTokens += one.outputTokens;
    sum.costNano += one.costNano;
  }
  return sum;
}

function countOutputTokens(
  { choices, limitedTokens, unlimitedChoices }: LineGroup,
  { type, pricing, maxOutputTokens }: CatalogModel,
): number {
  switch (type) {
    case 'embedding':
      return 0;
    case 'image':
      return pricing.type === 'tokens' ? choices * maxOutputTokens : 0;
    case 'chat':
    case 'vision':
      return (
        Math.min(limitedTokens, (choices - unlimitedChoices) * maxOutputTokens) +
        unlimitedChoices * Math.min(assumedOutputTokens, maxOutputTokens)
      );
    default:
      return type satisfies never;
  }
}

function computeGroupCost(
  group: LineGroup,
  { pricing, published, routes }: CatalogModel,
  inputTokens: number,
  outputTokens: number,
): bigint {
  const { lines } = group;
  const cost = (usage: Partial<Usage>): bigint => computeCost(pricing, { ...noUsage, ...usage });
  switch (pricing.type) {
    case 'tokens': {
      // The price of a token may depend on the length of its prompt, so the tokens are spread over the lines evenly.
      const [prompt, longerPrompts] = divide(inputTokens, lines);
      const [completion, longerCompletions] = divide(outputTokens, lines);
      let sum = 0n;
      const bounds = [0, longerPrompts, longerCompletions, lines].sort((one, next) => one - next);
      for (const [i, from] of bounds.slice(0, -1).entries()) {
        const usage = {
          promptTokens: prompt + (from < longerPrompts ? 1 : 0),
          completionTokens: completion + (from < longerCompletions ? 1 : 0),
        };
        sum += BigInt(bounds[i + 1]! - from) * cost(usage);
      }
      return sum;
    }
    case 'image':
    case 'characters':
      return cost({
        images: group.choices,
        imageSize: listSizes(published).includes(group.size ?? '') ? group.size : findDefaultSize(published),
        imageQuality: listQualities(published).includes(group.quality ?? '')
          ? group.quality
          : (published.image_quality?.default ?? null),
        characters: group.characters,
      });
    case 'request':
      return BigInt(lines) * cost({});
    case 'time':
      // As a single request reserves it.
      return (
        BigInt(lines) * cost({ durationMs: Math.max(0, ...routes.map(({ upstream }) => upstream.timeoutMs)) })
      );
    default:
      return pricing.type satisfies never;
  }
}

/** @returns quotient and remainder */
const divide = (amount: number, by: number): [quotient: number, remainder: number] => [
  Math.floor(amount / by),
  amount % by,
];
