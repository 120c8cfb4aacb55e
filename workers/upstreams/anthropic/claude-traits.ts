/**
 * What a Claude model accepts, derived from its name. The Messages API responds with 400 to fields that a model does
 * not support, and has no way to query them. Based on Anthropic's pages on thinking, effort, preserved thinking and
 * migration (2026).
 */
export interface ClaudeTraits {
  /** How thinking is requested; null if the model cannot think. */
  readonly thinking: 'budget' | 'effort' | null;
  /**
   * How to turn off thinking, for models controlled by effort: `unasked` if it is off unless requested, `disabled` or
   * `between_tools` if the request must set this type, `never` for models that always think.
   */
  readonly thinkingOff: 'unasked' | 'disabled' | 'between_tools' | 'never';
  /** Whether it thinks if the request does not mention thinking. */
  readonly thinksByDefault: boolean;
  /** Whether it supports the effort `xhigh`. */
  readonly hasXhigh: boolean;
  /** Whether a thinking block is only valid after exactly the conversation in which it was generated. */
  readonly bindsThinking: boolean;
  /** Which of `temperature` and `top_p` it accepts: both, one of them, or only the default. */
  readonly sampling: 'both' | 'one' | 'none';
  /** Whether it continues an assistant message that ends the conversation. */
  readonly supportsPrefill: boolean;
}

interface ClaudeName {
  readonly family: string;
  /** Major and minor, e.g. 406 for 4.6. */
  readonly version: number;
}

/** `claude-opus-4-6`, `claude-sonnet-4-20250514`, `us.anthropic.claude-opus-4-6-v1:0`, `anthropic/claude-opus-4.6`. */
const FAMILY_FIRST = /(opus|sonnet|haiku|fable|mythos|instant)-(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?/;
/** `claude-3-5-sonnet-20241022`, `claude-3-opus-20240229`, `claude-2.1`. */
const VERSION_FIRST = /claude-(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?(?:-(opus|sonnet|haiku))?/;

/**
 * Derives the traits from a model's name. A name without a known version is treated as the newest model: fields that
 * newer models reject are omitted, which older models tolerate. But if the route sets `thinking: budget` for such a
 * name, the model is treated as an older one. It is most likely another vendor's model behind this API.
 */
export function readClaudeTraits(model: string, configured: 'budget' | 'effort' | null): ClaudeTraits {
  const name = readName(model);
  if (name === null) {
    return configured === 'budget' ? describe({ family: 'sonnet', version: 307 }) : unknown;
  }
  return describe(name);
}

const older: ClaudeTraits = {
  thinking: null,
  thinkingOff: 'unasked',
  thinksByDefault: false,
  hasXhigh: false,
  bindsThinking: false,
  sampling: 'both',
  supportsPrefill: true,
};

const newest: ClaudeTraits = {
  thinking: 'effort',
  thinkingOff: 'never',
  thinksByDefault: true,
  hasXhigh: true,
  bindsThinking: true,
  sampling: 'none',
  supportsPrefill: false,
};

/** Thinking is only requested if the caller requests it, because another vendor's server may not support it. */
const unknown: ClaudeTraits = { ...newest, thinksByDefault: false, bindsThinking: false };

function describe({ family, version }: ClaudeName): ClaudeTraits {
  if (version < 307) return older;
  if (version < 400) return { ...older, thinking: 'budget' };
  if (version < 406) return { ...older, thinking: 'budget', sampling: 'one' };
  const adaptive: ClaudeTraits = { ...older, thinking: 'effort', sampling: 'one', supportsPrefill: false };
  if (version < 407) return adaptive;
  if (version < 500) return { ...adaptive, sampling: 'none', hasXhigh: true };
  const alwaysThinks = family === 'fable' || family === 'mythos';
  if (version < 505) {
    return {
      ...newest,
      thinkingOff: alwaysThinks ? 'never' : 'disabled',
      bindsThinking: alwaysThinks && version > 500,
    };
  }
  if (family === 'sonnet') return { ...newest, thinkingOff: 'between_tools' };
  if (family === 'haiku') return { ...newest, thinkingOff: 'disabled' };
  return newest;
}

function readName(model: string): ClaudeName | null {
  const name = model.toLowerCase();
  const [, family, major, minor] = FAMILY_FIRST.exec(name) ?? [];
  if (family !== undefined) return { family, version: toVersion(major, minor) };
  const [, majorFirst, minorAfter, familyAfter] = VERSION_FIRST.exec(name) ?? [];
  if (majorFirst !== undefined)
    return { family: familyAfter ?? '', version: toVersion(majorFirst, minorAfter) };
  return null;
}

function toVersion(major: string | undefined, minor: string | undefined): number {
  return Number(major) * 100 + Number(minor ?? 0);
}
