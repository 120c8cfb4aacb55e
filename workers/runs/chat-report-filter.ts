import type { CatalogModel, CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { allowForSearch, maxVendorCalls, maySearch } from '../../shared/catalog/search-allowance.ts';
import {
  allowOverrun,
  findUsageBounds,
  isBounded,
  maxTokensPerSecond,
  type ChatUsageBounds,
  type UsageBounds,
} from '../../shared/catalog/usage-bounds.ts';
import type { ChatJob } from '../../shared/work/queue/job-kinds.ts';
import { countChoices } from '../../shared/routing/chat-needs.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import type { UpstreamUsage } from '../upstreams/upstream.ts';
import { removeImplausible, logImplausible, logOverrun } from './plausible-usage.ts';

/** Removes implausible counts from the usage reports of one call. */
export class ChatReportFilter {
  readonly #job: ChatJob;
  readonly #model: CatalogModel;
  readonly #route: CatalogRoute;
  readonly #log: Logger;
  readonly #bounds: ChatUsageBounds;
  /** Used to log each message only once, because continuous reports would repeat it with every chunk. */
  readonly #logged = new Set<typeof logImplausible>();

  constructor(job: ChatJob, model: CatalogModel, route: CatalogRoute, log: Logger) {
    this.#job = job;
    this.#model = model;
    this.#route = route;
    this.#log = log;
    this.#bounds = findChatBounds(job, model, route);
  }

  /** @param seen counts the response tokens so far, if needed, and how long they took */
  take(
    usage: UpstreamUsage,
    seen: { readonly countTokens: () => number; readonly elapsedMs: number },
  ): UpstreamUsage {
    const isOverrun = (usage.completionTokens ?? 0) > this.#bounds.completionTokens;
    const bounds = isOverrun ? this.#allowOverrun(usage, seen) : this.#bounds;
    const plausible = removeImplausible(usage, bounds);
    if (plausible !== usage) this.#logOnce(logImplausible, usage, bounds);
    if ((plausible.completionTokens ?? 0) > this.#bounds.completionTokens)
      this.#logOnce(logOverrun, plausible, this.#bounds);
    return plausible;
  }

  #allowOverrun(
    usage: UpstreamUsage,
    seen: { readonly countTokens: () => number; readonly elapsedMs: number },
  ): UsageBounds {
    const choices = countChoices(this.#route, this.#job.body);
    const mayHaveReasoned = mayReason(this.#job, this.#model) || (usage.reasoningTokens ?? 0) > 0;
    const perChoice = (seen.elapsedMs / 1_000) * maxTokensPerSecond;
    const unseenTokens = mayHaveReasoned ? perChoice * choices : 0;
    return allowOverrun(this.#bounds, { tokens: seen.countTokens(), unseenTokens, choices });
  }

  #logOnce(
    write: typeof logImplausible,
    usage: UpstreamUsage,
    { promptTokens, completionTokens }: UsageBounds,
  ): void {
    if (this.#logged.has(write)) return;
    this.#logged.add(write);
    write(this.#log, { model: this.#model.id, route: this.#route.id }, usage, {
      promptTokens,
      completionTokens,
    });
  }
}

export function mayReason(
  { body }: Pick<ChatJob, 'body'>,
  { published }: Pick<CatalogModel, 'published'>,
): boolean {
  const effort = body.reasoning_effort ?? null;
  return published.reasoning === true || (effort !== null && effort !== 'none');
}

/** Returns the completion tokens that were reserved. */
export function countReserved({ body, reservedTokens }: ChatJob, route: CatalogRoute | null): number {
  if (route === null) return reservedTokens;
  const requested = (readMaxTokens(body) ?? Infinity) * countChoices(route, body);
  return isBounded(route) ? requested : reservedTokens;
}

export function readMaxTokens({
  max_completion_tokens: newer,
  max_tokens: older,
}: ChatJob['body']): number | null {
  return newer ?? older ?? null;
}

function findChatBounds(job: ChatJob, model: CatalogModel, route: CatalogRoute): ChatUsageBounds {
  const { request, body } = job;
  const isSearchPossible = maySearch(body, model);
  const calls = maxVendorCalls(body, model);
  return findUsageBounds({
    context: model.context,
    mostPromptTokens: isSearchPossible ? null : job.mostPromptTokens,
    calls,
    searchTokens: isSearchPossible ? allowForSearch(model, request.promptTokens, calls) : 0,
    choices: countChoices(route, body),
    maxTokens: isBounded(route) ? readMaxTokens(body) : null,
    // A token has at least one character, so the number of characters is an upper bound, which is precise enough here.
    predictedTokens: body.prediction ? JSON.stringify(body.prediction).length : 0,
    mayGenerateImages: (model.published.output_modalities ?? []).includes('image'),
  });
}
