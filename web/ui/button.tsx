import type { ButtonHTMLAttributes, ComponentChildren } from 'preact';
import { Icon, type IconName } from './icon.tsx';

export type ButtonKind = 'primary' | 'secondary' | 'quiet' | 'danger';

export interface ButtonProps extends Omit<ButtonHTMLAttributes, 'icon' | 'size' | 'class'> {
  readonly kind?: ButtonKind;
  readonly size?: 'small' | 'medium';
  readonly icon?: IconName;
  /** Whether its work is being done. The button keeps its size and its focus, and does nothing. */
  readonly busy?: boolean;
  readonly class?: string;
  readonly children?: ComponentChildren;
}

/** A button. One without text needs an `aria-label`. */
export function Button({
  kind = 'secondary',
  size = 'medium',
  icon,
  busy = false,
  type = 'button',
  class: className = '',
  children,
  onClick,
  ...others
}: ButtonProps) {
  const isIconOnly = children === undefined;
  return (
    <button
      {...others}
      type={type}
      class={`button ${kind} ${size} ${isIconOnly ? 'icon-only' : ''} ${className}`}
      aria-busy={busy || undefined}
      aria-disabled={busy || undefined}
      onClick={(event) => {
        if (busy) event.preventDefault();
        else onClick?.(event);
      }}
    >
      {icon !== undefined && <Icon name={icon} />}
      {children}
      {busy && <span class="spinner" aria-hidden="true" />}
    </button>
  );
}
