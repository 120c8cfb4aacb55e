import { useEffect, useRef, useState } from 'preact/hooks';
import { refreshAccounts } from '../../lib/accounts.ts';
import { ApiError, describeError } from '../../lib/api-error.ts';
import { useFormat } from '../../lib/format.ts';
import { useLanguage, useMessages } from '../../lib/language.tsx';
import type en from './messages.en.ts';
import { sendTried, type ResponseEnd, type ResponseHead } from './send-tried.ts';

/** Sends a request and shows its response as it comes. */
export function TriedResponse({
  request,
  isPaid,
  onEnd,
}: {
  readonly request: Request;
  readonly isPaid: boolean;
  readonly onEnd: () => void;
}) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const language = useLanguage();
  const section = useRef<HTMLElement>(null);
  const shown = useRef<HTMLElement>(null);
  const [head, setHead] = useState<ResponseHead | null>(null);
  const [end, setEnd] = useState<ResponseEnd | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    setHead(null);
    setEnd(null);
    setError(null);
    shown.current!.replaceChildren();
    section.current!.scrollIntoView({ block: 'nearest' });
    // The text is added to the page piece by piece: rendering all of it again for each would take ever longer.
    const add = (text: string): void => shown.current?.append(text);
    sendTried(request, setHead, add)
      .then(setEnd, setError)
      .finally(() => {
        layOutJson(shown.current);
        onEnd();
        if (isPaid) refreshAccounts().catch(() => undefined);
      });
  }, [request]);
  const time = (milliseconds: number): string => format.seconds(milliseconds / 1_000);
  const status = head?.status ?? 0;
  const describeFailure = (): string => {
    if (error instanceof ApiError) return describeError(error, language);
    return t(request.signal.aborted ? 'stopped' : 'broken');
  };
  return (
    <section ref={section} class="docs-response" aria-label={t('response')}>
      <p role="status" class="docs-status">
        {head !== null && (
          <>
            <strong class={status < 400 ? 'good' : 'bad'}>{t('status', { status: String(status) })}</strong>
            <span>{t('firstByte', { time: time(head.milliseconds) })}</span>
          </>
        )}
        {end !== null && <span>{t('total', { time: time(end.milliseconds) })}</span>}
        {error !== null && <span>{describeFailure()}</span>}
      </p>
      <figure class="code-block wrapped">
        <figcaption>
          <span>{t('response')}</span>
        </figcaption>
        <pre tabIndex={0} role="group" aria-label={t('response')}>
          <code ref={shown} />
        </pre>
      </figure>
      {end?.isTruncated === true && <p class="soft small">{t('truncated')}</p>}
      {head !== null && (
        <details>
          <summary>{t('responseHeaders')}</summary>
          <ul class="docs-headers">
            {head.headers.map(([name, value]) => (
              <li key={name}>
                <code>
                  {name}: {value}
                </code>
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

/** JSON comes in one line; a person reads it in many. Anything else stays as it is. */
function layOutJson(element: HTMLElement | null): void {
  if (element === null) return;
  try {
    element.textContent = JSON.stringify(JSON.parse(element.textContent), null, 2);
  } catch {
    // A stream, or a part of a long response.
  }
}
