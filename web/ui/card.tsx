import type { ComponentChildren } from 'preact';

/** A part of a page with a heading of its own. */
export function Card({
  title,
  actions,
  children,
}: {
  readonly title?: string;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  return (
    <section class="card">
      {title !== undefined && (
        <header class="card-head">
          <h2>{title}</h2>
          {actions}
        </header>
      )}
      {children}
    </section>
  );
}

export type Tone = 'neutral' | 'good' | 'warning' | 'bad' | 'accent';

/** A word about the state of something. Its colour says nothing that the word does not. */
export const Badge = ({
  tone = 'neutral',
  children,
}: {
  readonly tone?: Tone;
  readonly children: ComponentChildren;
}) => <span class={`badge ${tone}`}>{children}</span>;

/** A property, such as a capability of a model. */
export const Tag = ({ children }: { readonly children: ComponentChildren }) => (
  <span class="tag">{children}</span>
);

/** A number with its name: the figures at the top of a page. */
export const Stat = ({
  label,
  children,
  note,
}: {
  readonly label: string;
  readonly children: ComponentChildren;
  readonly note?: ComponentChildren;
}) => (
  <div class="stat">
    <p class="stat-label">{label}</p>
    <p class="stat-value">{children}</p>
    <p class="stat-note">{note}</p>
  </div>
);
