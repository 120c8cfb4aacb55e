import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useCommon } from '../lib/language.tsx';
import { Button } from './button.tsx';

const shownMs = 2_000;

/** Copies a text. A page without https has no clipboard of its own, and uses a selection. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand('copy');
    area.remove();
    return isCopied;
  }
}

export function CopyButton({
  text,
  label,
  hasText = false,
  isLabelled = false,
  onCopied,
}: {
  readonly text: string;
  /** What is copied, for the button's name; by default just "Copy". */
  readonly label?: string;
  readonly hasText?: boolean;
  /** Whether the label is shown, too. */
  readonly isLabelled?: boolean;
  readonly onCopied?: () => void;
}) {
  const common = useCommon();
  const [isCopied, setIsCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setIsCopied(false), shownMs);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = (): void => {
    copyText(text).then(
      (isDone) => {
        setIsCopied(isDone);
        if (isDone) onCopied?.();
      },
      () => setIsCopied(false),
    );
  };
  return (
    <>
      <Button
        kind="quiet"
        size="small"
        icon={isCopied ? 'check' : 'copy'}
        aria-label={label ?? common('copy')}
        onClick={copy}
      >
        {isLabelled ? label : hasText ? common(isCopied ? 'copied' : 'copy') : undefined}
      </Button>
      <span class="unseen" role="status">
        {isCopied ? common('copied') : ''}
      </span>
    </>
  );
}

/** Code that can be copied. It scrolls within itself, also by keyboard. */
export function CodeBlock({
  code,
  copied = code,
  title,
  actions,
  onCopied,
}: {
  readonly code: string;
  /** What is copied, if the shown code is shortened. */
  readonly copied?: string;
  readonly title: string;
  readonly actions?: ComponentChildren;
  readonly onCopied?: () => void;
}) {
  return (
    <figure class="code-block">
      <figcaption>
        <span>{title}</span>
        <span class="code-actions">
          {actions}
          <CopyButton text={copied} {...(onCopied === undefined ? {} : { onCopied })} />
        </span>
      </figcaption>
      <pre tabIndex={0} role="region" aria-label={title}>
        <code>{code}</code>
      </pre>
    </figure>
  );
}
