import { normalizeProps, useMachine } from '@zag-js/preact';
import * as tooltip from '@zag-js/tooltip';
import type { ComponentChildren } from 'preact';
import { useUniqueId } from '../lib/unique-id.ts';

/** Explains a word or a number. It opens by pointer and by focus, and Escape closes it. */
export function Tooltip({
  text,
  children,
}: {
  readonly text: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  const service = useMachine(tooltip.machine, { id: useUniqueId(), openDelay: 200, closeDelay: 100 });
  const api = tooltip.connect(service, normalizeProps);
  return (
    <>
      <button {...api.getTriggerProps()} type="button" class="tooltip-word">
        {children}
      </button>
      {api.open && (
        <span {...api.getPositionerProps()} class="tooltip-place">
          <span {...api.getContentProps()} class="tooltip">
            {text}
          </span>
        </span>
      )}
    </>
  );
}
