/** A stream of server-sent events, read to its end. */
export interface SseEvents {
  /** The data of each event, in order, without `[DONE]`. */
  readonly events: readonly ChunkEvent[];
  readonly isDone: boolean;
  readonly text: string;
}

/** A chunk, or the error that ended the stream. */
export interface ChunkEvent {
  readonly id?: string;
  /** Only in events of a streamed image. */
  readonly type?: string;
  readonly object?: string;
  readonly created?: number;
  readonly model?: string;
  readonly choices?: readonly {
    readonly index: number;
    readonly delta: {
      readonly role?: string;
      readonly content?: string | null;
      readonly tool_calls?: readonly {
        readonly index: number;
        readonly id?: string;
        readonly type?: string;
        readonly function?: { readonly name?: string; readonly arguments?: string };
      }[];
    };
    readonly finish_reason: string | null;
  }[];
  readonly usage?: Readonly<Record<string, unknown>> | null;
  readonly error?: { readonly message: string; readonly code: string; readonly type: string };
  readonly detail?: unknown;
}

const end = '[DONE]';

/** Removes the comments, whose number depends on how long the stream was silent. */
export const withoutComments = (body: string): string => body.replaceAll(/^:.*\n/gm, '');

export function parseSse(body: string): SseEvents {
  const data = body
    .split('\n\n')
    .map((block) => block.replaceAll(/^(?:(?:id|event): |:).*\n/gm, ''))
    .filter((block) => block.startsWith('data: '))
    .map((block) => block.slice('data: '.length));
  const events = data.filter((text) => text !== end).map((text) => JSON.parse(text) as ChunkEvent);
  return {
    events,
    // If anything follows the end mark, the stream has not ended properly.
    isDone: data.at(-1) === end,
    text: events.map((event) => event.choices?.[0]?.delta.content ?? '').join(''),
  };
}

export async function readSse(response: Response): Promise<SseEvents> {
  return parseSse(await response.text());
}
