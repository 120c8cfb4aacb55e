import type { ChildProcess } from 'node:child_process';
import type { ChildMessage } from './serve-requests.ts';

/** How the work on a request ended. */
export type RunEnd<Reply> =
  | { readonly kind: 'reply'; readonly reply: Reply }
  /** It took longer than its time limit. */
  | { readonly kind: 'late' }
  /** The caller disconnected, or the run was stopped. */
  | { readonly kind: 'stopped' }
  /** The process ended by itself: by an unhandled error, for lack of memory, or killed from outside. */
  | { readonly kind: 'crashed'; readonly what: string; readonly error?: Error };

interface SentRequest<Reply> {
  /** Resolves when the process begins the work, which a new process does once it has started, or when the request ends. */
  readonly begin: Promise<void>;
  readonly end: Promise<RunEnd<Reply>>;
  /** Resolves the end to `stopped` unless the request has ended. */
  readonly stop: () => void;
}

/** Sends a request to a child process and waits for the reply. Does not end the child. */
export function sendRequest<Reply>(
  child: ChildProcess,
  request: object,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
): SentRequest<Reply> {
  let stop = (): void => undefined;
  let begin = (): void => undefined;
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const end = new Promise<RunEnd<Reply>>((resolve) => {
    const settle = (result: RunEnd<Reply>): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      child.off('message', onMessage).off('close', onEnd).off('error', onEnd);
      begin();
      resolve(result);
    };
    stop = () => settle({ kind: 'stopped' });
    const onEnd = (): void => settle({ kind: 'crashed', what: 'ended unexpectedly' });
    const onMessage = (message: ChildMessage<Reply>): void => {
      if ('begins' in message) begin();
      else if ('crash' in message) settle({ kind: 'crashed', what: message.what, error: message.crash });
      else settle({ kind: 'reply', reply: message.reply });
    };
    const timer = setTimeout(() => settle({ kind: 'late' }), timeoutMs);
    signal.addEventListener('abort', stop);
    // 'close' follows the last message, whereas 'exit' may precede it.
    child.on('message', onMessage).on('close', onEnd).on('error', onEnd);
    if (signal.aborted) stop();
    // If sending fails, the process has ended or could not start.
    else child.send(request, (error) => error !== null && onEnd());
  });
  return { begin: begun, end, stop };
}
