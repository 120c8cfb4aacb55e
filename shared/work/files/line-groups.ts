import type { LineGroup } from './file-verdict.ts';
import { shorten } from '../../platform/runtime/shorten.ts';
import type { BodyFacts, FieldTexts } from './line-facts.ts';

/** Lines with further models, sizes and qualities are summed up together. */
const maxGroups = 100;
const maxModelChars = 100;
const maxOptionChars = 32;
/** Larger numbers are those of a mistake, and would make sums inexact. */
const maxChoices = 1_000;
const maxOutputTokens = 100_000_000;
/** A group with less counted text than this has the ratio of the whole file. */
const minSampleChars = 2_000;
/** If no text was counted: the ratio of English prose. */
const defaultTokensPerChar = 1 / 4;

type Sums = {
  -readonly [Name in Exclude<keyof LineGroup, 'model' | 'size' | 'quality'>]: NonNullable<LineGroup[Name]>;
};

/** `tokens` has those that are counted; the others are added at the end. */
interface Group extends Sums {
  readonly model: string | null;
  readonly size: string | null;
  readonly quality: string | null;
  countedCharacters: number;
  countedTokens: number;
}

const createGroup = (model: string | null, size: string | null, quality: string | null): Group => ({
  model,
  size,
  quality,
  lines: 0,
  characters: 0,
  tokens: 0,
  inputs: 0,
  messages: 0,
  choices: 0,
  limitedTokens: 0,
  unlimitedChoices: 0,
  countedCharacters: 0,
  countedTokens: 0,
});

const readText = (value: unknown, maxChars: number): string | null =>
  typeof value === 'string' ? shorten(value, maxChars) : null;

const readCount = (value: unknown, max: number): number | null =>
  Number.isInteger(value) && (value as number) >= 1 ? Math.min(value as number, max) : null;

/** Sums up the lines of a file by what determines their price. */
export class LineGroups {
  readonly #groups = new Map<string, Group>();
  #other: Group | null = null;

  /** @param body null for a line without one */
  add(body: BodyFacts | null): void {
    const group = this.#find(
      readText(body?.model, maxModelChars),
      readText(body?.size, maxOptionChars),
      readText(body?.quality, maxOptionChars),
    );
    const choices = readCount(body?.n, maxChoices) ?? 1;
    const limit =
      readCount(body?.max_completion_tokens, maxOutputTokens) ?? readCount(body?.max_tokens, maxOutputTokens);
    group.lines += 1;
    group.choices += choices;
    if (limit === null) group.unlimitedChoices += choices;
    else group.limitedTokens += choices * limit;
    group.inputs += countInputs(body?.fields.input);
    group.messages += body?.fields.messages?.elements ?? 0;
    for (const field of Object.values(body?.fields ?? {})) {
      group.characters += field.characters;
      group.countedCharacters += field.countedCharacters;
      group.countedTokens += field.countedTokens;
      group.tokens += field.tokenIds;
    }
  }

  #find(model: string | null, size: string | null, quality: string | null): Group {
    const key = JSON.stringify([model, size, quality]);
    const known = this.#groups.get(key);
    if (known !== undefined) return known;
    if (this.#groups.size >= maxGroups) return (this.#other ??= createGroup(null, null, null));
    const group = createGroup(model, size, quality);
    this.#groups.set(key, group);
    return group;
  }

  end(): { readonly groups: LineGroup[]; readonly other: LineGroup | null } {
    const groups = [...this.#groups.values()];
    const all = this.#other === null ? groups : [...groups, this.#other];
    const characters = all.reduce((sum, group) => sum + group.countedCharacters, 0);
    const tokens = all.reduce((sum, group) => sum + group.countedTokens, 0);
    const ratio = characters === 0 ? defaultTokensPerChar : tokens / characters;
    const finish = (group: Group): LineGroup => finishGroup(group, ratio);
    return { groups: groups.map(finish), other: this.#other === null ? null : finish(this.#other) };
  }
}

/** @param fileRatio tokens per character of the whole file */
function finishGroup({ countedCharacters, countedTokens, ...group }: Group, fileRatio: number): LineGroup {
  const ratio = countedCharacters >= minSampleChars ? countedTokens / countedCharacters : fileRatio;
  const remaining = Math.ceil((group.characters - countedCharacters) * ratio);
  return { ...group, tokens: group.tokens + countedTokens + remaining };
}

function countInputs(input: FieldTexts | undefined): number {
  if (input === undefined || input.elements === null || input.isTokenArray) return 1;
  return Math.max(1, input.elements);
}
