import * as menu from '@zag-js/menu';
import { normalizeProps, useMachine } from '@zag-js/preact';
import type { ComponentChildren } from 'preact';
import { useUniqueId } from '../lib/unique-id.ts';
import { Icon, type IconName } from './icon.tsx';

export interface MenuItem {
  readonly value: string;
  readonly label: ComponentChildren;
  readonly icon?: IconName;
  readonly onSelect: () => void;
  /** For one of several choices: whether it is chosen. */
  readonly isChosen?: boolean;
}

export interface MenuGroup {
  readonly label?: string;
  readonly items: readonly MenuItem[];
}

export interface MenuProps {
  /** The name of the menu. */
  readonly label: string;
  /** Whether the button has a text, which is then its name. If not, that is the name of the menu. */
  readonly hasText?: boolean;
  readonly button: ComponentChildren;
  readonly buttonClass?: string;
  readonly isDisabled?: boolean;
  /** Above the items; not one of them. */
  readonly head?: ComponentChildren;
  readonly groups: readonly MenuGroup[];
}

/** A button that opens a menu. Arrows, letters and Escape work as in menus of the system. */
export function Menu({
  label,
  hasText = false,
  button,
  buttonClass = 'button quiet medium',
  isDisabled = false,
  head,
  groups,
}: MenuProps) {
  const items = groups.flatMap((group) => group.items);
  const service = useMachine(menu.machine, {
    id: useUniqueId(),
    'aria-label': label,
    positioning: { placement: 'bottom-end', gutter: 6 },
    onSelect: ({ value }) => items.find((item) => item.value === value)?.onSelect(),
  });
  const api = menu.connect(service, normalizeProps);
  return (
    <>
      <button
        {...api.getTriggerProps()}
        type="button"
        class={buttonClass}
        disabled={isDisabled}
        aria-label={hasText ? undefined : label}
      >
        {button}
      </button>
      <div {...api.getPositionerProps()} class="menu-place">
        <div {...api.getContentProps()} class="menu">
          {head !== undefined && <div class="menu-head">{head}</div>}
          {groups.map((group, i) => (
            <MenuGroupView key={i} group={group} id={String(i)} api={api} />
          ))}
        </div>
      </div>
    </>
  );
}

type MenuApi = ReturnType<typeof menu.connect>;

function MenuGroupView({
  group: { label, items },
  id,
  api,
}: {
  readonly group: MenuGroup;
  readonly id: string;
  readonly api: MenuApi;
}) {
  return (
    <div {...(label === undefined ? {} : api.getItemGroupProps({ id }))} class="menu-group">
      {label !== undefined && (
        <p {...api.getItemGroupLabelProps({ htmlFor: id })} class="menu-label">
          {label}
        </p>
      )}
      {items.map((item) => (
        <div key={item.value} {...itemProps(api, item)} class="menu-item">
          {item.icon !== undefined && <Icon name={item.icon} />}
          <span class="menu-text">{item.label}</span>
          {item.isChosen === true && <Icon name="check" size={16} />}
        </div>
      ))}
    </div>
  );
}

function itemProps(api: MenuApi, { value, isChosen, onSelect }: MenuItem): object {
  if (isChosen === undefined) return api.getItemProps({ value });
  return api.getOptionItemProps({
    type: 'radio',
    value,
    checked: isChosen,
    onCheckedChange: () => onSelect(),
  });
}
