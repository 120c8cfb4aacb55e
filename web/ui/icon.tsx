import arrowClockwise from '@phosphor-icons/core/assets/regular/arrow-clockwise.svg?raw';
import arrowRight from '@phosphor-icons/core/assets/regular/arrow-right.svg?raw';
import arrowSquareOut from '@phosphor-icons/core/assets/regular/arrow-square-out.svg?raw';
import caretDown from '@phosphor-icons/core/assets/regular/caret-down.svg?raw';
import caretLeft from '@phosphor-icons/core/assets/regular/caret-left.svg?raw';
import caretRight from '@phosphor-icons/core/assets/regular/caret-right.svg?raw';
import check from '@phosphor-icons/core/assets/regular/check.svg?raw';
import copy from '@phosphor-icons/core/assets/regular/copy.svg?raw';
import downloadSimple from '@phosphor-icons/core/assets/regular/download-simple.svg?raw';
import gearSix from '@phosphor-icons/core/assets/regular/gear-six.svg?raw';
import list from '@phosphor-icons/core/assets/regular/list.svg?raw';
import magnifyingGlass from '@phosphor-icons/core/assets/regular/magnifying-glass.svg?raw';
import plus from '@phosphor-icons/core/assets/regular/plus.svg?raw';
import signOut from '@phosphor-icons/core/assets/regular/sign-out.svg?raw';
import slidersHorizontal from '@phosphor-icons/core/assets/regular/sliders-horizontal.svg?raw';
import trash from '@phosphor-icons/core/assets/regular/trash.svg?raw';
import userCircle from '@phosphor-icons/core/assets/regular/user-circle.svg?raw';
import warningCircle from '@phosphor-icons/core/assets/regular/warning-circle.svg?raw';
import x from '@phosphor-icons/core/assets/regular/x.svg?raw';

/** The icons that pages share. A page that needs another imports its file and uses `SvgIcon`. */
const icons = {
  refresh: arrowClockwise,
  forward: arrowRight,
  external: arrowSquareOut,
  down: caretDown,
  left: caretLeft,
  right: caretRight,
  check,
  copy,
  download: downloadSimple,
  settings: gearSix,
  menu: list,
  search: magnifyingGlass,
  plus,
  'sign-out': signOut,
  sliders: slidersHorizontal,
  trash,
  user: userCircle,
  warning: warningCircle,
  close: x,
} as const;

export type IconName = keyof typeof icons;

export const Icon = ({ name, size = 18 }: { readonly name: IconName; readonly size?: number }) => (
  <SvgIcon svg={icons[name]} size={size} />
);

/** @param svg the text of a file of Phosphor. The icon is decoration: its button or link has the name */
export function SvgIcon({ svg, size = 18 }: { readonly svg: string; readonly size?: number }) {
  const shapes = [...svg.matchAll(/ d="([^"]+)"/g)].map(([, shape]) => shape!);
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 256 256" fill="currentColor" aria-hidden="true">
      {shapes.map((shape) => (
        <path key={shape} d={shape} />
      ))}
    </svg>
  );
}
