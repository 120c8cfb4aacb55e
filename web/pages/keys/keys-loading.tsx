import { Skeleton } from '../../ui/states.tsx';

/** The places of an account's parts while it is loading. */
export const KeysLoading = () => (
  <div class="keys-loading">
    <div class="card">
      <Skeleton lines={4} />
    </div>
    <div class="card">
      <Skeleton lines={6} />
    </div>
  </div>
);
