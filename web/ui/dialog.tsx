import * as dialog from '@zag-js/dialog';
import { normalizeProps, useMachine } from '@zag-js/preact';
import type { ComponentChildren } from 'preact';
import { createPortal } from 'preact/compat';
import { useRef } from 'preact/hooks';
import { useCommon } from '../lib/language.tsx';
import { useUniqueId } from '../lib/unique-id.ts';
import { Button } from './button.tsx';

export interface DialogProps {
  readonly title: string;
  readonly isOpen: boolean;
  /** Called by Escape, the button in the corner and a click outside. */
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly size?: 'small' | 'medium' | 'large';
  /** Whether only its buttons close it, because what was typed would be lost. */
  readonly isGuarded?: boolean;
  /** Buttons beside the one that closes it. */
  readonly actions?: ComponentChildren;
}

/** A dialog that keeps the focus inside while it is open, and gives it back afterwards. */
export function Dialog({
  title,
  isOpen,
  onClose,
  children,
  size = 'medium',
  isGuarded = false,
  actions,
}: DialogProps) {
  const common = useCommon();
  const content = useRef<HTMLDivElement>(null);
  const service = useMachine(dialog.machine, {
    id: useUniqueId(),
    open: isOpen,
    closeOnInteractOutside: !isGuarded,
    // By default it closes with a dialog that was open before it, such as the search that has led to it.
    onRequestDismiss: (event) => event.preventDefault(),
    initialFocusEl: () => {
      const { activeElement: focused } = document;
      // Somebody may be typing already. Enter would then be the button that closes it.
      if (focused instanceof HTMLElement && content.current?.contains(focused) === true) return focused;
      // Nobody wants the first of the buttons in the head.
      return actions === undefined ? null : content.current;
    },
    onOpenChange: ({ open }) => {
      if (!open) onClose();
    },
  });
  const api = dialog.connect(service, normalizeProps);
  if (!api.open) return null;
  return createPortal(
    <>
      <div {...api.getBackdropProps()} class="backdrop" />
      <div {...api.getPositionerProps()} class="dialog-place">
        <div {...api.getContentProps()} ref={content} class={`dialog ${size}`}>
          <header class="dialog-head">
            <h2 {...api.getTitleProps()}>{title}</h2>
            <span class="dialog-buttons">
              {actions}
              <Button kind="quiet" icon="close" aria-label={common('close')} onClick={onClose} />
            </span>
          </header>
          {children}
        </div>
      </div>
    </>,
    document.body,
  );
}

/** The buttons of a dialog, at its end. The main one comes last. */
export const DialogActions = ({ children }: { readonly children: ComponentChildren }) => (
  <div class="dialog-actions">{children}</div>
);
