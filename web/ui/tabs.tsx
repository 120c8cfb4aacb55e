import { normalizeProps, useMachine } from '@zag-js/preact';
import * as tabs from '@zag-js/tabs';
import type { ComponentChildren } from 'preact';
import { useUniqueId } from '../lib/unique-id.ts';

export interface Tab<Value extends string> {
  readonly value: Value;
  readonly label: string;
  readonly content: ComponentChildren;
}

/** Tabs, of which one is shown. Arrow keys move between them. */
export function Tabs<Value extends string>({
  label,
  list,
  value,
  onChange,
}: {
  readonly label: string;
  readonly list: readonly Tab<Value>[];
  readonly value: Value;
  readonly onChange: (value: Value) => void;
}) {
  const service = useMachine(tabs.machine, {
    id: useUniqueId(),
    value,
    onValueChange: (change) => onChange(change.value as Value),
  });
  const api = tabs.connect(service, normalizeProps);
  return (
    <div {...api.getRootProps()} class="tabs">
      <div {...api.getListProps()} class="tab-list" aria-label={label}>
        {list.map((tab) => (
          <button key={tab.value} {...api.getTriggerProps({ value: tab.value })} class="tab">
            {tab.label}
          </button>
        ))}
      </div>
      {list.map((tab) => (
        <div key={tab.value} {...api.getContentProps({ value: tab.value })} class="tab-panel">
          {tab.value === value && tab.content}
        </div>
      ))}
    </div>
  );
}
