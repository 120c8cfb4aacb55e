import { useEffect, useRef, useState } from 'preact/hooks';
import type { CountProgress, CountRequest } from './count-worker.ts';

/** More is not counted, so that a paste of any length ends. */
export const maxCountedChars = 2_000_000;

/** Typing goes on before this has passed. */
const settleMs = 200;

export type TokenCount =
  | { readonly state: 'none' }
  | { readonly state: 'counting'; readonly share: number }
  | { readonly state: 'done'; readonly tokens: number }
  | { readonly state: 'failed' };

/**
 * Counts the tokens of a text in a worker, which is loaded with its vocabulary (1 MB) for the first text. The text
 * never leaves the browser.
 */
export function useTokenCount(text: string, onCount: (tokens: number) => void): TokenCount {
  const [counted, setCounted] = useState<{ readonly of: string; readonly count: TokenCount }>({
    of: '',
    count: { state: 'none' },
  });
  const worker = useRef<Worker | null>(null);
  const id = useRef(0);
  /** What is counted. */
  const counting = useRef('');
  const report = useRef(onCount);
  report.current = onCount;
  useEffect(() => () => worker.current?.terminate(), []);
  useEffect(() => {
    id.current += 1;
    counting.current = text;
    const setCount = (count: TokenCount): void => setCounted({ of: counting.current, count });
    if (text === '') {
      setCount({ state: 'none' });
      return;
    }
    setCount(begun);
    const timer = setTimeout(() => {
      worker.current ??= startWorker(
        (progress) => {
          if (progress.id !== id.current) return;
          if (progress.share < 1) {
            setCount({ state: 'counting', share: progress.share });
            return;
          }
          setCount({ state: 'done', tokens: progress.tokens });
          report.current(progress.tokens);
        },
        () => {
          // The next text tries again.
          worker.current = null;
          setCount({ state: 'failed' });
        },
      );
      worker.current.postMessage({ id: id.current, text } satisfies CountRequest);
    }, settleMs);
    return () => clearTimeout(timer);
  }, [text]);
  // The count of the text before is not of this one.
  return counted.of === text ? counted.count : begun;
}

const begun: TokenCount = { state: 'counting', share: 0 };

function startWorker(onProgress: (progress: CountProgress) => void, onFail: () => void): Worker {
  const worker = new Worker(new URL('./count-worker.ts', import.meta.url), { type: 'module' });
  worker.addEventListener('message', ({ data }: MessageEvent<CountProgress>) => onProgress(data));
  worker.addEventListener('error', () => {
    worker.terminate();
    onFail();
  });
  return worker;
}
