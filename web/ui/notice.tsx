import type { ComponentChildren } from 'preact';
import type { Tone } from './card.tsx';

/** Something to know before reading on. */
export const Notice = ({
  tone = 'neutral',
  title,
  children,
}: {
  readonly tone?: Tone;
  readonly title: string;
  readonly children?: ComponentChildren;
}) => (
  <div class={`notice ${tone}`}>
    <p class="notice-title">{title}</p>
    {children}
  </div>
);
