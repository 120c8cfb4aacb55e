/**
 * What a Claude takes, told by its name: the Messages API refuses with 400 what a model has no place for, and says it
 * of no model beforehand. Facts of Anthropic's pages on thinking, effort, preserved thinking and migration (2026).
 */
export interface ClaudeTraits {
  /** How it is told to think; null for those that cannot. */
  readonly thinking: 'budget' | 'effort' | null;
  /** How its thinking is turned off, for those told by effort; `never` for those that always think. */
  readonly thinkingOff: 'unasked' | 'disabled' | 'between_tools' | 'never';
  /** Whether it thinks where the request says nothing of it. */
  readonly thinksUnasked: boolean;
  /** Whether `xhigh` is one of its efforts. */
  readonly hasXhigh: boolean;
  /** Whether a thinking block counts only behind the very conversation that it was made in. */
  readonly bindsThinking: boolean;
  /** Which of `temperature` and `top_p` it takes: both, one of them, or none but the default. */
  readonly sampling: 'both' | 'one' | 'none';
  /** Whether it goes on from an assistant's message that ends the conversation. */
  readonly takesPrefill: boolean;
}

interface ClaudeName {
  readonly line: string;
  /** Major and minor, as 406 for 4.6. */
  readonly version: number;
}

/** `claude-opus-4-6`, `claude-sonnet-4-20250514`, `us.anthropic.claude-opus-4-6-v1:0`, `anthropic/claude-opus-4.6`. */
const LINE_FIRST = /(opus|sonnet|haiku|fable|mythos|instant)-(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?/;
/** `claude-3-5-sonnet-20241022`, `claude-3-opus-20240229`, `claude-2.1`. */
const VERSION_FIRST = /claude-(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?(?:-(opus|sonnet|haiku))?/;

/**
 * A name without a version that we know of counts as the newest: what newer models refuse is left out then, which an
 * older one merely does without. But a route that says `thinking: budget` of such a name speaks of a model of the
 * older form, very likely another vendor's behind this API.
 */
export function readClaudeTraits(model: string, told: 'budget' | 'effort' | null): ClaudeTraits {
  const name = readName(model);
  if (name === null) {
    return told === 'budget' ? describe({ line: 'sonnet', version: 307 }) : unknown;
  }
  return describe(name);
}

const older: ClaudeTraits = {
  thinking: null,
  thinkingOff: 'unasked',
  thinksUnasked: false,
  hasXhigh: false,
  bindsThinking: false,
  sampling: 'both',
  takesPrefill: true,
};

const newest: ClaudeTraits = {
  thinking: 'effort',
  thinkingOff: 'never',
  thinksUnasked: true,
  hasXhigh: true,
  bindsThinking: true,
  sampling: 'none',
  takesPrefill: false,
};

/** Of thinking it is told only what the caller asked for: a server of another vendor's may know none of it. */
const unknown: ClaudeTraits = { ...newest, thinksUnasked: false, bindsThinking: false };

function describe({ line, version }: ClaudeName): ClaudeTraits {
  if (version < 307) return older;
  if (version < 400) return { ...older, thinking: 'budget' };
  if (version < 406) return { ...older, thinking: 'budget', sampling: 'one' };
  const adaptive: ClaudeTraits = { ...older, thinking: 'effort', sampling: 'one', takesPrefill: false };
  if (version < 407) return adaptive;
  if (version < 500) return { ...adaptive, sampling: 'none', hasXhigh: true };
  const alwaysThinks = line === 'fable' || line === 'mythos';
  if (version < 505) {
    return {
      ...newest,
      thinkingOff: alwaysThinks ? 'never' : 'disabled',
      bindsThinking: alwaysThinks && version > 500,
    };
  }
  if (line === 'sonnet') return { ...newest, thinkingOff: 'between_tools' };
  if (line === 'haiku') return { ...newest, thinkingOff: 'disabled' };
  return newest;
}

function readName(model: string): ClaudeName | null {
  const name = model.toLowerCase();
  const [, line, major, minor] = LINE_FIRST.exec(name) ?? [];
  if (line !== undefined) return { line, version: toVersion(major, minor) };
  const [, majorFirst, minorAfter, lineAfter] = VERSION_FIRST.exec(name) ?? [];
  if (majorFirst !== undefined) return { line: lineAfter ?? '', version: toVersion(majorFirst, minorAfter) };
  return null;
}

function toVersion(major: string | undefined, minor: string | undefined): number {
  return Number(major) * 100 + Number(minor ?? 0);
}
